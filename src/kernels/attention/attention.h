// Causal attention of new tokens over a paged KV cache: prefill, chunked prefill and decode in one
// operation, with grouped query heads, an optional sliding window and optional sinks.
//
//   weight(i, j) = exp(scale q_i . k_j) / (exp(sink_h) + sum over visible j of exp(scale q_i .
//   k_j)) out_i = sum over visible j of weight(i, j) v_j
//
// Key j is visible to the query at position i if j <= i and j > i - window. Sinks: Xiao et al.,
// "Efficient Streaming Language Models with Attention Sinks", 2023, as gpt-oss learns them per
// head.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct AttentionArgs {
  TensorView q;        // [num_tokens, num_q_heads, head_dim] fp32 or bf16
  TensorView k_cache;  // [num_pages, page_size, num_kv_heads, head_dim] fp32 or bf16, contiguous
  TensorView v_cache;  // like k_cache
  TensorView
      page_table;  // [num_seqs, max_pages] int32; entries outside the visible range may be anything
  TensorView cu_seqlens_q;  // [num_seqs + 1] int32: tokens of sequence s are [cu[s], cu[s + 1])
  TensorView seq_lens;      // [num_seqs] int32: tokens in the cache, the new ones included
  TensorView sinks;         // [num_q_heads] fp32; absent = none
  TensorView out;           // [num_tokens, num_q_heads, head_dim] as q
  float scale;
  int window = 0;  // keys a query sees, itself included; 0 = all before it
};

// Online softmax in fp32 over blocks of keys that lie at multiples of 64 positions: the result for
// one query has the same bits whatever the page size, the chunk and the batch.
void attention(Stream& stream, const AttentionArgs& args);

}  // namespace briar

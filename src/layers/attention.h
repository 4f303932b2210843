// Grouped-query attention over the paged cache: qkv projection, RoPE, attention, output projection.
#pragma once

#include "layers/context.h"
#include "layers/linear.h"
#include "layers/norm.h"

namespace briar {

struct Attention {
  Linear qkv_proj;        // [(num_q_heads + 2 num_kv_heads) head_dim, hidden_size]
  Linear o_proj;          // [hidden_size, num_q_heads head_dim]
  TensorView sinks = {};  // [num_q_heads] fp32; absent = none
  // Of every head before the rotation, [head_dim] with one eps; both or neither.
  RmsNorm q_norm = {};
  RmsNorm k_norm = {};
  int64_t num_q_heads = 0;
  int64_t head_dim = 0;
  float scale = 0;  // of q.k, before the softmax
  int window = 0;   // 0 = full attention
  KvKind kv_kind = KvKind::kFull;
  int layer_idx = 0;  // of the KV cache

  // x: [num_tokens, hidden_size] in the activation dtype.
  PartialSum forward(const ForwardContext& ctx, const TensorView& x) const;
};

}  // namespace briar

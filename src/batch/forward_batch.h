// What layers read of a step: device views, filled in by the runner.
#pragma once

#include <array>
#include <span>

#include "batch/kv_kind.h"
#include "device/tensor.h"

namespace briar {

struct ForwardBatch {
  TensorView token_ids;     // [num_tokens] int32
  TensorView positions;     // [num_tokens] int32
  TensorView cu_seqlens_q;  // [num_seqs + 1] int32
  TensorView seq_lens;      // [num_seqs] int32: tokens with KV once this step has run
  TensorView output_rows;   // [num_outputs] int32: rows whose hidden states the model returns
  struct Kv {
    TensorView page_table;  // [num_seqs, max_pages] int32; -1 where there is no page
    TensorView slots;       // [num_tokens] int32
  };
  std::array<Kv, kNumKvKinds> kv;  // by KvKind
};

// The cache of one layer; both [num_pages, page_size, num_kv_heads, head_dim] in the KV dtype.
struct KvLayerView {
  TensorView k;
  TensorView v;
};

struct KvCacheView {
  std::span<const KvLayerView> layers;
};

}  // namespace briar

// What every layer's forward() is given besides its input.
#pragma once

#include "batch/forward_batch.h"
#include "device/arena.h"
#include "device/device.h"
#include "layers/precision.h"

namespace briar {

struct ForwardContext {
  Stream& stream;
  Arena& workspace;  // intermediate tensors; a layer frees its own through Arena::Scope
  const ForwardBatch& batch;
  const KvCacheView& kv_cache;
  const Precision& precision;
  TensorView rope_cos_sin;  // [num_tokens, head_dim] fp32, made once a step

  // A tensor of the workspace with one row a token.
  TensorView make(DType dtype, int64_t num_rows, int64_t width) const {
    return workspace.tensor(dtype, {num_rows, width});
  }
};

// [num_tokens, hidden_size] fp32 that still needs its sum over tensor-parallel ranks. Row-parallel
// layers return it and only a norm accepts it, so that a reduction can be neither forgotten nor
// done twice.
struct PartialSum {
  TensorView tensor;  // absent: nothing to add (before the first layer)
};

}  // namespace briar

// A dense projection.
#pragma once

#include "layers/context.h"

namespace briar {

struct Linear {
  TensorView weight;  // [out_features, in_features] fp32 or bf16
  TensorView bias;    // [out_features]; absent = none

  int64_t num_bytes() const { return weight.num_bytes() + bias.num_bytes(); }

  // x: [num_tokens, in_features]; returns [num_tokens, out_features] in `out_dtype`, in the
  // workspace.
  TensorView forward(const ForwardContext& ctx, const TensorView& x, DType out_dtype) const;
  // The same into `out`.
  void forward_into(Stream& stream, const TensorView& x, const TensorView& out) const;
};

}  // namespace briar

// A dense projection.
#pragma once

#include <optional>
#include <vector>

#include "kernels/quantized_linear/block_format.h"
#include "layers/context.h"

namespace briar {

// Rows of a weight matrix that are stored alike.
struct WeightRows {
  TensorView data;  // [num_rows, in_features] fp32 or bf16; quantised: [packed bytes] uint8
  int64_t num_rows = 0;
  std::optional<BlockFormat> format = {};  // of quantised rows
};

struct Linear {
  // One after another: several where a file has the parts of a stacked projection in different
  // formats.
  std::vector<WeightRows> weight;
  TensorView bias;  // [out_features]; absent = none

  int64_t out_features() const;
  int64_t num_bytes() const;

  // x: [num_tokens, in_features]; returns [num_tokens, out_features] in `out_dtype`, in the
  // workspace.
  TensorView forward(const ForwardContext& ctx, const TensorView& x, DType out_dtype) const;
  // The same into `out`.
  void forward_into(Stream& stream, const TensorView& x, const TensorView& out) const;
};

}  // namespace briar

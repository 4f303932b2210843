// Residual add and RMSNorm in one pass:
//   residual += x;  out = residual / sqrt(mean(residual^2) + eps) * weight
// Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct RmsNormArgs {
  TensorView
      x;  // [num_tokens, hidden_size] fp32, added to the residual first; absent = nothing to add
  TensorView residual;  // [num_tokens, hidden_size] fp32, in/out
  TensorView weight;    // [hidden_size] fp32 or bf16
  TensorView
      row_index;   // [num_outputs] int32, distinct: only these tokens, in this order; absent = all
  TensorView out;  // [num_tokens or num_outputs, hidden_size] fp32 or bf16
  float eps;
};

// The sum of squares is fp32 in a fixed order; one rounding to bf16 at the end.
void rms_norm(Stream& stream, const RmsNormArgs& args);

}  // namespace briar

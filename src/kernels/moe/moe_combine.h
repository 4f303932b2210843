// Weighted sum of the experts' outputs of each token:
//   out[t] = sum over choices c, best first, of weights[t, c] * rows[row_of[t, c]]
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct MoeCombineArgs {
  TensorView rows;     // [num_tokens * num_experts_per_tok, hidden_size] fp32, ordered by expert
  TensorView row_of;   // [num_tokens, num_experts_per_tok] int32
  TensorView weights;  // [num_tokens, num_experts_per_tok] fp32
  TensorView out;      // [num_tokens, hidden_size] fp32
};

void moe_combine(Stream& stream, const MoeCombineArgs& args);

}  // namespace briar

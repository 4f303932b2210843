// The plain SwiGLU of dense models (Shazeer, "GLU Variants Improve Transformer", 2020):
//   g = x[i];  u = x[intermediate_size + i];  out[i] = g * sigmoid(g) * u
// gpt-oss's clamped form with interleaved rows is an op of its own (kernels/moe/swiglu.h).
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct SiluMulArgs {
  TensorView x;    // [num_rows, 2 * intermediate_size] fp32: gates, then ups
  TensorView out;  // [num_rows, intermediate_size] fp32 or bf16
};

void silu_mul(Stream& stream, const SiluMulArgs& args);

}  // namespace briar

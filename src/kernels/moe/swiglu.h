// The clamped SwiGLU of gpt-oss. Gate and up rows are interleaved, as the checkpoint stores them:
//   g = min(x[2 i], limit);  u = clamp(x[2 i + 1], -limit, limit)
//   out[i] = g * sigmoid(alpha * g) * (u + 1)
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct SwigluArgs {
  TensorView x;    // [num_rows, 2 * intermediate_size] fp32, contiguous rows
  TensorView out;  // [num_rows, intermediate_size] fp32 or bf16
  float alpha;     // 1.702
  float limit;     // 7
};

void swiglu(Stream& stream, const SwigluArgs& args);

}  // namespace briar

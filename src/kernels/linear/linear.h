// out = x * weight^T + bias: the matrix product of every projection, the router and the head.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct LinearArgs {
  TensorView x;       // [num_tokens, in_features] fp32 or bf16, row stride may exceed in_features
  TensorView weight;  // [out_features, in_features] fp32, bf16 or MXFP4 (contiguous)
  TensorView weight_scales;  // [out_features, in_features / 32] uint8 E8M0; MXFP4 only, else absent
  TensorView bias;           // [out_features] fp32 or bf16; absent = none
  TensorView out;  // [num_tokens, out_features] fp32 or bf16, row stride may exceed out_features
};

// Products are exact in fp32 FMA chains over in_features in an order that depends on in_features
// alone: a row's result has the same bits in any batch, with any number of threads. bf16 output is
// rounded once, after the bias.
void linear(Stream& stream, const LinearArgs& args);

}  // namespace briar

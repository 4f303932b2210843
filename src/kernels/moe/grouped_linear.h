// One matrix product per expert over the rows that moe_permute() assigned to it.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct GroupedLinearArgs {
  TensorView x;            // [num_x_rows, in_features] fp32 or bf16
  TensorView row_index;    // [num_rows] int32: row of x for each row of out; absent = the same row
  TensorView row_offsets;  // [num_experts + 1] int32, from moe_permute()
  TensorView weight;       // [num_experts, out_features, in_features] fp32, bf16 or MXFP4
  TensorView weight_scales;  // [num_experts, out_features, in_features / 32] uint8; MXFP4 only
  TensorView bias;           // [num_experts, out_features] fp32 or bf16; absent = none
  TensorView out;            // [num_rows, out_features] fp32 or bf16
};

// Same arithmetic and the same guarantees as linear().
void grouped_linear(Stream& stream, const GroupedLinearArgs& args);

}  // namespace briar

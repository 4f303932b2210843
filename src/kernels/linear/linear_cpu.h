// The CPU matrix product underneath linear() and grouped_linear(). Internal to kernels/.
#pragma once

#include <cstdint>

#include "device/tensor.h"
#include "kernels/cpu/isa.h"

namespace briar {

class ThreadPool;

// Several products that share K and N and the output: expert e multiplies rows [row_offsets[e],
// row_offsets[e + 1]) with its own weight. linear() is the case of one expert.
struct GroupedProduct {
  TensorView x;                          // [num_rows or more, k] fp32 or bf16
  TensorView weight;                     // [num_groups, n, k] fp32, bf16 or MXFP4
  TensorView scales;                     // [num_groups, n, k / 32] uint8 for MXFP4
  TensorView bias;                       // [num_groups, n] fp32 or bf16; absent = none
  TensorView out;                        // [num_rows, n] fp32 or bf16
  const int32_t* row_offsets = nullptr;  // [num_groups + 1]
  const int32_t* gather =
      nullptr;  // [num_rows]: row of x for each row of out; nullptr = the same row
};

BRIAR_DECLARE_CPU_KERNEL(void grouped_product(ThreadPool& pool, const GroupedProduct& args))

}  // namespace briar

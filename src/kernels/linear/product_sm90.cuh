// What the product kernels share.
#pragma once

#include "kernels/cuda/common.cuh"
#include "kernels/linear/product_sm90.h"

namespace briar::sm90 {

struct ProductParams {
  const void* x;
  const int32_t* row_index;
  const int32_t* row_offsets;
  const void* weight;
  const uint8_t* scales;
  AnyFloats bias;
  AnyFloatsOut out;
  int64_t x_stride, out_stride, n, k, num_rows;
  int num_groups;

  __device__ int64_t group_begin(int group) const {
    return row_offsets == nullptr ? 0 : row_offsets[group];
  }
  __device__ int64_t group_end(int group) const {
    return row_offsets == nullptr ? num_rows : row_offsets[group + 1];
  }
  __device__ int64_t x_row(int64_t row) const {
    return row_index == nullptr ? row : row_index[row];
  }
};

inline ProductParams product_params(const Product& p) {
  return {.x = p.x.data(),
          .row_index = p.row_index ? p.row_index.ptr<int32_t>() : nullptr,
          .row_offsets = p.row_offsets ? p.row_offsets.ptr<int32_t>() : nullptr,
          .weight = p.weight.data(),
          .scales = p.scales ? p.scales.ptr<uint8_t>() : nullptr,
          .bias = any_floats(p.bias),
          .out = any_floats_out(p.out),
          .x_stride = p.x.stride(0),
          .out_stride = p.out.stride(0),
          .n = p.weight.size(1),
          .k = p.weight.size(2),
          .num_rows = p.out.size(0),
          .num_groups = static_cast<int>(p.weight.size(0))};
}

// 2^(scale - 127) as a bf16 pair, subnormal for a scale of 0.
__device__ inline __nv_bfloat162 mxfp4_scale(uint32_t scale) {
  const uint32_t bits = scale == 0 ? 0x0040u : scale << 7;
  const uint32_t pair = bits | bits << 16;
  return *reinterpret_cast<const __nv_bfloat162*>(&pair);
}

// Eight 4-bit values (the first in the low nibble) times their scale, as bf16 pairs in order:
// exact. A value's exponent and mantissa bits, moved into those of a bf16, are the value times
// 2^-126.
__device__ inline void expand_mxfp4(uint32_t values, __nv_bfloat162 scale, uint32_t (&out)[4]) {
  const uint32_t unit_bits = 0x7e807e80u;  // 2^126, twice
  const __nv_bfloat162 unit = *reinterpret_cast<const __nv_bfloat162*>(&unit_bits);
  uint32_t pairs[4];  // pair i: values i and i + 4
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibbles = values >> (4 * i);
    const uint32_t bits = (nibbles << 6 & 0x01c001c0u) | (nibbles << 12 & 0x80008000u);
    const __nv_bfloat162 pair =
        __hmul2(__hmul2(*reinterpret_cast<const __nv_bfloat162*>(&bits), unit), scale);
    pairs[i] = *reinterpret_cast<const uint32_t*>(&pair);
  }
  out[0] = __byte_perm(pairs[0], pairs[1], 0x5410);
  out[1] = __byte_perm(pairs[2], pairs[3], 0x5410);
  out[2] = __byte_perm(pairs[0], pairs[1], 0x7632);
  out[3] = __byte_perm(pairs[2], pairs[3], 0x7632);
}

}  // namespace briar::sm90

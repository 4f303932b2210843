// Values with their ids as integers that sort as "larger value first, then lower id; a NaN before
// everything". Never 0 and never all ones, so that either can stand for "none".
#pragma once

#include <cstdint>

#include "kernels/cuda/common.cuh"

namespace briar::sm90 {

constexpr uint32_t kNanBits = 0xfffffffeu;  // above those of infinity

// Monotonic in the value; -0 equals +0.
__device__ inline uint32_t ordered_bits(float value) {
  if (value != value) return kNanBits;
  const uint32_t bits = __float_as_uint(value + 0.f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline uint64_t order_key(float value, uint32_t id) {
  return uint64_t{ordered_bits(value)} << 32 | (0xffffffffu - id);
}
__device__ inline uint32_t id_of_key(uint64_t key) {
  return 0xffffffffu - static_cast<uint32_t>(key);
}

__device__ inline uint64_t warp_max(uint64_t value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, value, offset);
    if (other > value) value = other;
  }
  return value;
}

}  // namespace briar::sm90

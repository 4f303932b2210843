// What the sampling kernels do over one row of logits with one block.
#pragma once

#include "kernels/cuda/order_key.cuh"

namespace briar::sm90 {

inline constexpr int kRowThreads = 1024;
inline constexpr int kRowWarps = kRowThreads / kWarp;

// The largest key of the block, in every thread. `partial`: shared, one a warp.
__device__ inline uint64_t block_max(uint64_t value, uint64_t* partial) {
  value = warp_max(value);
  __syncthreads();  // earlier use of `partial` is over
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  uint64_t best = 0;
  for (int i = 0; i < kRowWarps; ++i) best = max(best, partial[i]);
  return best;
}

// The best (value, id) of a row below `limit` in the order of order_key().
__device__ inline uint64_t best_of_row(const float* row, int64_t n, uint64_t limit,
                                       uint64_t* partial) {
  uint64_t best = 0;
  for (int64_t i = threadIdx.x; i < n; i += kRowThreads) {
    const uint64_t key = order_key(row[i], static_cast<uint32_t>(i));
    if (key < limit && key > best) best = key;
  }
  return block_max(best, partial);
}

__device__ inline bool is_nan_key(uint64_t key) { return key >> 32 == kNanBits; }

// Sum of the block in a fixed order, in every thread.
template <class T>
__device__ T block_total(T value, T* partial) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < kRowWarps; ++i) sum += partial[i];
  return sum;
}

}  // namespace briar::sm90

// What all CUDA kernels share: types, loads and stores as fp32, reductions, launch order.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "device/dtype.h"
#include "device/launch.h"

namespace briar::sm90 {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// To be called first by every kernel: lets the next kernel of the stream start, and waits until the
// memory of the ones before is complete.
__device__ inline void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }

__device__ inline void store(float* to, float value) { *to = value; }
__device__ inline void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

// The bf16 pair (low, high) as one register.
__device__ inline uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// fp32 or bf16, decided at run time: a branch that all threads of a kernel take alike. For vectors
// that are read once: biases, norm weights.
struct AnyFloats {
  const void* data;  // nullptr: zeros
  bool is_bf16;
  __device__ float operator[](int64_t i) const {
    if (data == nullptr) return 0.f;
    return is_bf16 ? as_float(static_cast<const __nv_bfloat16*>(data)[i])
                   : static_cast<const float*>(data)[i];
  }
};
struct AnyFloatsOut {
  void* data;
  bool is_bf16;
  __device__ void set(int64_t i, float value) const {
    if (is_bf16) {
      store(static_cast<__nv_bfloat16*>(data) + i, value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }
};
inline AnyFloats any_floats(const TensorView& t) { return {t.data(), t.dtype() == DType::kBf16}; }
inline AnyFloatsOut any_floats_out(const TensorView& t) {
  return {t.data(), t.dtype() == DType::kBf16};
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

// Sum over the block, the same bits in every thread. `partial`: shared, one float a warp.
__device__ inline float block_sum(float value, float* partial) {
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0.f;
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarp; ++i) sum += partial[i];
  return sum;
}

// d += a * b: a [16, 16] row-major, b [8, 16] row-major (that is, 16 x 8 column-major), bf16; d
// [16, 8] fp32. Lane 4 g + t holds d[g][2t], d[g][2t + 1], d[g + 8][2t], d[g + 8][2t + 1].
__device__ inline void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 16 bytes from global to shared memory in the background; zeros if not `valid`.
__device__ inline void copy_async(void* shared, const void* global, bool valid) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int num_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
               "r"(num_bytes));
}
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int kPending>
__device__ inline void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace briar::sm90

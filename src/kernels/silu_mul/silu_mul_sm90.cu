// out[i] = g sigmoid(g) u with g = x[i], u = x[size + i]: a thread an element. Bound by memory: 8
// bytes read and 2 or 4 written an element.
#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/silu_mul/silu_mul.h"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 256;

struct Params {
  const float* x;
  AnyFloatsOut out;
  int64_t num_rows, size, x_stride, out_stride;
};

__global__ void silu_mul_kernel(Params p) {
  wait_for_previous_kernel();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.num_rows * p.size;
       i += step) {
    const int64_t row = i / p.size, column = i % p.size;
    const float* x = p.x + row * p.x_stride + column;
    p.out.set(row * p.out_stride + column, x[0] / (1.f + expf(-x[0])) * x[p.size]);
  }
}

}  // namespace

void silu_mul(Stream& stream, const SiluMulArgs& a) {
  const int64_t blocks = std::min<int64_t>(ceil_div(a.out.num_elements(), kThreads), 1 << 16);
  launch(stream, "silu_mul", silu_mul_kernel,
         {.grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(kThreads)},
         Params{a.x.ptr<float>(), any_floats_out(a.out), a.out.size(0), a.out.size(1),
                a.x.stride(0), a.out.stride(0)});
}

}  // namespace briar::sm90

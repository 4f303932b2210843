// The product for every type, size and stride: fp32 checkpoints and shapes that the fast kernels do
// not take.
#include <algorithm>

#include "kernels/linear/product_sm90.cuh"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 256;

struct Fp32Weight {
  const float* row;
  __device__ static Fp32Weight at(const ProductParams& p, int64_t row) {
    return {static_cast<const float*>(p.weight) + row * p.k};
  }
  __device__ float operator[](int64_t i) const { return row[i]; }
};
struct Bf16Weight {
  const __nv_bfloat16* row;
  __device__ static Bf16Weight at(const ProductParams& p, int64_t row) {
    return {static_cast<const __nv_bfloat16*>(p.weight) + row * p.k};
  }
  __device__ float operator[](int64_t i) const { return as_float(row[i]); }
};
struct Mxfp4Weight {
  const uint8_t* row;
  const uint8_t* scales;
  __device__ static Mxfp4Weight at(const ProductParams& p, int64_t row) {
    return {static_cast<const uint8_t*>(p.weight) + row * (p.k / 2), p.scales + row * (p.k / 32)};
  }
  __device__ float operator[](int64_t i) const {
    const int nibble = row[i / 2] >> (i % 2 * 4) & 15;
    const int exponent = nibble >> 1 & 3, mantissa = nibble & 1;
    const float magnitude = exponent == 0
                                ? 0.5f * static_cast<float>(mantissa)
                                : ldexpf(1.f + 0.5f * static_cast<float>(mantissa), exponent - 1);
    const float value = ldexpf(magnitude, int{scales[i / 32]} - 127);
    return (nibble & 8) != 0 ? -value : value;
  }
};

template <class X, class Weight>
__global__ void product_any_kernel(ProductParams p) {
  wait_for_previous_kernel();
  const int group = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  if (column >= p.n) return;
  const Weight weight = Weight::at(p, group * p.n + column);
  const int64_t end = p.group_end(group);
  for (int64_t row = p.group_begin(group) + blockIdx.z; row < end; row += gridDim.z) {
    const X* x = static_cast<const X*>(p.x) + p.x_row(row) * p.x_stride;
    float sum = 0.f;
    for (int64_t i = lane; i < p.k; i += kWarp) sum = fmaf(as_float(x[i]), weight[i], sum);
    sum = warp_sum(sum);
    if (lane == 0) p.out.set(row * p.out_stride + column, sum + p.bias[group * p.n + column]);
  }
}

template <class X>
void launch_for(Stream& stream, const Product& p, const LaunchShape& shape) {
  const auto kernel = p.weight.dtype() == DType::kFp32   ? product_any_kernel<X, Fp32Weight>
                      : p.weight.dtype() == DType::kBf16 ? product_any_kernel<X, Bf16Weight>
                                                         : product_any_kernel<X, Mxfp4Weight>;
  launch(stream, "product_any", kernel, shape, product_params(p));
}

}  // namespace

void product_any(Stream& stream, const Product& p) {
  const LaunchShape shape{
      .grid = dim3(static_cast<unsigned>(ceil_div(p.weight.size(1), kThreads / kWarp)),
                   static_cast<unsigned>(p.weight.size(0)),
                   static_cast<unsigned>(std::min<int64_t>(p.out.size(0), 64))),
      .block = dim3(kThreads)};
  if (p.x.dtype() == DType::kBf16) {
    launch_for<__nv_bfloat16>(stream, p, shape);
  } else {
    launch_for<float>(stream, p, shape);
  }
}

}  // namespace briar::sm90

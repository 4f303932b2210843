// residual += x; out = residual / sqrt(mean(residual^2) + eps) * weight. Bound by memory: x and the
// residual read once from DRAM, the residual and out written once; for few rows, by latency.
//
// One block a row. A thread reads back only what it wrote itself, so the row stays in its L1.
#include "kernels/cuda/common.cuh"
#include "kernels/rms_norm/rms_norm.h"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 512;

struct Params {
  const float* x;
  float* residual;
  AnyFloats weight;
  const int32_t* row_index;
  AnyFloatsOut out;
  int64_t hidden_size, x_stride, residual_stride, out_stride;
  float eps;
};

__global__ void rms_norm_kernel(Params p) {
  __shared__ float partial[kThreads / kWarp];
  wait_for_previous_kernel();
  const int64_t i = blockIdx.x;
  const int64_t token = p.row_index != nullptr ? p.row_index[i] : i;
  float* row = p.residual + token * p.residual_stride;
  float squares = 0.f;
  for (int64_t j = threadIdx.x; j < p.hidden_size; j += kThreads) {
    float r = row[j];
    if (p.x != nullptr) row[j] = r += p.x[token * p.x_stride + j];
    squares = fmaf(r, r, squares);
  }
  const float mean = block_sum(squares, partial) / static_cast<float>(p.hidden_size);
  const float inv_rms = 1.f / sqrtf(mean + p.eps);
  for (int64_t j = threadIdx.x; j < p.hidden_size; j += kThreads) {
    p.out.set(i * p.out_stride + j, row[j] * inv_rms * p.weight[j]);
  }
}

}  // namespace

void rms_norm(Stream& stream, const RmsNormArgs& a) {
  launch(
      stream, "rms_norm", rms_norm_kernel,
      {.grid = dim3(static_cast<unsigned>(a.out.size(0))), .block = dim3(kThreads)},
      Params{a.x ? a.x.ptr<float>() : nullptr, a.residual.ptr<float>(), any_floats(a.weight),
             a.row_index ? a.row_index.ptr<int32_t>() : nullptr, any_floats_out(a.out),
             a.out.size(1), a.x ? a.x.stride(0) : 0, a.residual.stride(0), a.out.stride(0), a.eps});
}

}  // namespace briar::sm90

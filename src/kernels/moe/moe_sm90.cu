// The small operations around the experts: permute, SwiGLU, combine (formulas in their headers).
// SwiGLU and combine are bound by memory: each input is read once, each output written once.
// Permute is bound by latency: every expert reads all ids, which are a few kilobytes.
#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/moe_permute.h"
#include "kernels/moe/swiglu.h"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 256;

// ---- permute ---------------------------------------------------------------------------------

struct PermuteParams {
  const int32_t* expert_ids;
  int32_t *row_offsets, *row_tokens, *row_of;
  int64_t num_tokens, ids_stride, row_of_stride;
  int choices, num_experts;
};

// How many threads of the block before this one hold `flag`, and how many in all.
__device__ int2 rank_in_block(bool flag, int* warp_counts) {
  const unsigned ballot = __ballot_sync(kAllLanes, flag);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) warp_counts[warp] = __popc(ballot);
  __syncthreads();
  int before = __popc(ballot & ((1u << lane) - 1)), all = 0;
  for (int w = 0; w < kThreads / kWarp; ++w) {
    if (w < warp) before += warp_counts[w];
    all += warp_counts[w];
  }
  __syncthreads();
  return {before, all};
}

// Block e places the rows of expert e, after it has counted those of all experts below.
__global__ void moe_permute_kernel(PermuteParams p) {
  __shared__ int warp_counts[kThreads / kWarp];
  __shared__ int num_below;
  wait_for_previous_kernel();
  const int expert = static_cast<int>(blockIdx.x);
  const int64_t num_pairs = p.num_tokens * p.choices;
  const auto id_of = [&](int64_t i) {
    return p.expert_ids[i / p.choices * p.ids_stride + i % p.choices];
  };
  if (threadIdx.x == 0) num_below = 0;
  __syncthreads();
  int below = 0;
  for (int64_t i = threadIdx.x; i < num_pairs; i += kThreads) below += id_of(i) < expert;
  atomicAdd(&num_below, below);
  __syncthreads();
  int row = num_below;
  if (threadIdx.x == 0) p.row_offsets[expert] = row;
  if (expert == p.num_experts) return;
  for (int64_t begin = 0; begin < num_pairs; begin += kThreads) {
    const int64_t i = begin + threadIdx.x;
    const bool is_mine = i < num_pairs && id_of(i) == expert;
    const int2 rank = rank_in_block(is_mine, warp_counts);
    if (is_mine) {
      p.row_tokens[row + rank.x] = static_cast<int32_t>(i / p.choices);
      p.row_of[i / p.choices * p.row_of_stride + i % p.choices] = row + rank.x;
    }
    row += rank.y;
  }
}

// ---- swiglu ----------------------------------------------------------------------------------

struct SwigluParams {
  const float* x;
  AnyFloatsOut out;
  int64_t num_rows, size, x_stride, out_stride;
  float alpha, limit;
};

// A NaN stays one: fminf() would drop it.
__device__ float at_most(float value, float limit) { return value > limit ? limit : value; }
__device__ float at_least(float value, float limit) { return value < limit ? limit : value; }

__global__ void swiglu_kernel(SwigluParams p) {
  wait_for_previous_kernel();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.num_rows * p.size;
       i += step) {
    const int64_t row = i / p.size, column = i % p.size;
    const float* x = p.x + row * p.x_stride + 2 * column;
    const float g = at_most(x[0], p.limit);
    const float u = at_least(at_most(x[1], p.limit), -p.limit);
    const float activated = g / (1.f + expf(-p.alpha * g));
    p.out.set(row * p.out_stride + column, activated * (u + 1.f));
  }
}

// ---- combine ---------------------------------------------------------------------------------

struct CombineParams {
  const float* rows;
  const int32_t* row_of;
  const float* weights;
  float* out;
  int64_t hidden_size, rows_stride, row_of_stride, weights_stride, out_stride;
  int choices;
};

__global__ void moe_combine_kernel(CombineParams p) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x;
  const int64_t i = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (i >= p.hidden_size) return;
  float sum = 0.f;
  for (int c = 0; c < p.choices; ++c) {
    const int64_t row = p.row_of[token * p.row_of_stride + c];
    sum = fmaf(p.weights[token * p.weights_stride + c], p.rows[row * p.rows_stride + i], sum);
  }
  p.out[token * p.out_stride + i] = sum;
}

}  // namespace

void moe_permute(Stream& stream, const MoePermuteArgs& a) {
  const int64_t num_experts = a.row_offsets.size(0) - 1;
  launch(stream, "moe_permute", moe_permute_kernel,
         {.grid = dim3(static_cast<unsigned>(num_experts + 1)), .block = dim3(kThreads)},
         PermuteParams{a.expert_ids.ptr<int32_t>(), a.row_offsets.ptr<int32_t>(),
                       a.row_tokens.ptr<int32_t>(), a.row_of.ptr<int32_t>(), a.expert_ids.size(0),
                       a.expert_ids.stride(0), a.row_of.stride(0),
                       static_cast<int>(a.expert_ids.size(1)), static_cast<int>(num_experts)});
}

void swiglu(Stream& stream, const SwigluArgs& a) {
  const int64_t blocks = std::min<int64_t>(ceil_div(a.out.num_elements(), kThreads), 1 << 16);
  launch(stream, "swiglu", swiglu_kernel,
         {.grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(kThreads)},
         SwigluParams{a.x.ptr<float>(), any_floats_out(a.out), a.out.size(0), a.out.size(1),
                      a.x.stride(0), a.out.stride(0), a.alpha, a.limit});
}

void moe_combine(Stream& stream, const MoeCombineArgs& a) {
  launch(stream, "moe_combine", moe_combine_kernel,
         {.grid = dim3(static_cast<unsigned>(a.out.size(0)),
                       static_cast<unsigned>(ceil_div(a.out.size(1), kThreads))),
          .block = dim3(kThreads)},
         CombineParams{a.rows.ptr<float>(), a.row_of.ptr<int32_t>(), a.weights.ptr<float>(),
                       a.out.ptr<float>(), a.out.size(1), a.rows.stride(0), a.row_of.stride(0),
                       a.weights.stride(0), a.out.stride(0), static_cast<int>(a.row_of.size(1))});
}

}  // namespace briar::sm90

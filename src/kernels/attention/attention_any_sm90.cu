// out_i = sum over visible j of softmax(scale q_i . k_j, with the sink in the denominator) v_j, for
// any types and dimensions: a warp a query and head walks its keys. Bound by latency, one key after
// the other; fp32 models and odd heads only.
#include "kernels/attention/attention_sm90.h"
#include "kernels/cuda/common.cuh"

namespace briar::sm90 {
namespace {

constexpr int kMaxDims = 256 / kWarp;  // of a head, a lane

struct Params {
  AnyFloats q, k, v;
  const int32_t *page_table, *cu_seqlens_q, *seq_lens;
  const float* sinks;
  AnyFloatsOut out;
  int64_t q_stride, q_head_stride, out_stride, out_head_stride, table_stride, page_size;
  int num_seqs, num_q_heads, num_kv_heads, head_dim, window;
  float scale;
};

// The last sequence that begins at or before the token; empty ones begin where the next does.
__device__ int sequence_of(const Params& p, int64_t token) {
  int low = 0, high = p.num_seqs;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (p.cu_seqlens_q[middle] <= token ? low : high) = middle;
  }
  return low;
}

__global__ void attention_any_kernel(Params p) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x);
  const int kv_head = head / (p.num_q_heads / p.num_kv_heads);
  const int s = sequence_of(p, token);
  const int64_t position = p.seq_lens[s] - p.cu_seqlens_q[s + 1] + token;
  const int64_t first = p.window > 0 ? max(int64_t{0}, position - p.window + 1) : 0;
  float largest = p.sinks != nullptr ? p.sinks[head] : -INFINITY;
  float sum = p.sinks != nullptr ? 1.f : 0.f;
  float q[kMaxDims], acc[kMaxDims] = {};
#pragma unroll
  for (int i = 0; i < kMaxDims; ++i) {
    const int d = lane + i * kWarp;
    q[i] = d < p.head_dim ? p.q[token * p.q_stride + head * p.q_head_stride + d] : 0.f;
  }
  for (int64_t j = first; j <= position; ++j) {
    const int64_t page = p.page_table[s * p.table_stride + j / p.page_size];
    const int64_t at =
        ((page * p.page_size + j % p.page_size) * p.num_kv_heads + kv_head) * p.head_dim;
    float dot = 0.f;
#pragma unroll
    for (int i = 0; i < kMaxDims; ++i) {
      const int d = lane + i * kWarp;
      if (d < p.head_dim) dot = fmaf(q[i], p.k[at + d], dot);
    }
    const float score = warp_sum(dot) * p.scale;
    if (score == -INFINITY) continue;
    const float previous = largest;
    largest = fmaxf(largest, score);
    const float shrink = expf(previous - largest), weight = expf(score - largest);
    sum = sum * shrink + weight;
#pragma unroll
    for (int i = 0; i < kMaxDims; ++i) {
      const int d = lane + i * kWarp;
      if (d < p.head_dim) acc[i] = fmaf(weight, p.v[at + d], acc[i] * shrink);
    }
  }
#pragma unroll
  for (int i = 0; i < kMaxDims; ++i) {
    const int d = lane + i * kWarp;
    if (d < p.head_dim) {
      p.out.set(token * p.out_stride + head * p.out_head_stride + d, acc[i] / sum);
    }
  }
}

}  // namespace

void attention_any(Stream& stream, const AttentionArgs& a) {
  launch(stream, "attention_any", attention_any_kernel,
         {.grid = dim3(static_cast<unsigned>(a.q.size(0)), static_cast<unsigned>(a.q.size(1))),
          .block = dim3(kWarp)},
         Params{.q = any_floats(a.q),
                .k = any_floats(a.k_cache),
                .v = any_floats(a.v_cache),
                .page_table = a.page_table.ptr<int32_t>(),
                .cu_seqlens_q = a.cu_seqlens_q.ptr<int32_t>(),
                .seq_lens = a.seq_lens.ptr<int32_t>(),
                .sinks = a.sinks ? a.sinks.ptr<float>() : nullptr,
                .out = any_floats_out(a.out),
                .q_stride = a.q.stride(0),
                .q_head_stride = a.q.stride(1),
                .out_stride = a.out.stride(0),
                .out_head_stride = a.out.stride(1),
                .table_stride = a.page_table.stride(0),
                .page_size = a.k_cache.size(1),
                .num_seqs = static_cast<int>(a.seq_lens.size(0)),
                .num_q_heads = static_cast<int>(a.q.size(1)),
                .num_kv_heads = static_cast<int>(a.k_cache.size(2)),
                .head_dim = static_cast<int>(a.q.size(2)),
                .window = a.window,
                .scale = a.scale});
}

}  // namespace briar::sm90

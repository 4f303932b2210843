// Tables of cosines and sines, and the rotation of q and k with their norms and the write into the
// paged cache. Bound by memory: qkv is read once from DRAM (twice by its warp where heads are
// normalised), q, k and v are written once.
#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/rope/rope.h"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxPairs = 128;  // head_dim is at most 256

struct TableParams {
  const int32_t* positions;
  float* cos_sin;
  int64_t stride;
  int num_pairs;
  double attention_factor;
  float inv_frequencies[kMaxPairs];
};

__global__ void rope_table_kernel(__grid_constant__ const TableParams p) {
  wait_for_previous_kernel();
  const int j = static_cast<int>(threadIdx.x);
  float* row = p.cos_sin + blockIdx.x * p.stride;
  const float angle = static_cast<float>(p.positions[blockIdx.x]) * p.inv_frequencies[j];
  double sine, cosine;
  sincos(double{angle}, &sine, &cosine);
  row[j] = static_cast<float>(cosine * p.attention_factor);
  row[p.num_pairs + j] = static_cast<float>(sine * p.attention_factor);
}

struct WriteParams {
  const float* qkv;
  const float* cos_sin;
  const int32_t* slots;
  AnyFloatsOut q, k_cache, v_cache;
  AnyFloats q_norm, k_norm;  // no data: heads stay as they are
  int64_t qkv_stride, cos_sin_stride, q_stride, q_head_stride;
  int num_q_heads, num_kv_heads, head_dim;
  float norm_eps;
};

// The factor that a head is normalised with. Called by whole warps.
__device__ float head_factor(const float* head, int head_dim, float eps) {
  float squares = 0.f;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < head_dim; i += kWarp) {
    squares = fmaf(head[i], head[i], squares);
  }
  return 1.f / sqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
}

// A warp a head of q, k or v; a lane a rotary pair (or a pair of v's elements) at a time.
__global__ void rope_kv_write_kernel(WriteParams p) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x;
  const int half = p.head_dim / 2;
  const int head = static_cast<int>((blockIdx.y * kThreads + threadIdx.x) / kWarp);
  if (head >= p.num_q_heads + 2 * p.num_kv_heads) return;
  const int kv_head = head - p.num_q_heads;
  const bool is_q = kv_head < 0, is_rotated = kv_head < p.num_kv_heads;
  const float* from = p.qkv + token * p.qkv_stride + int64_t{head} * p.head_dim;
  const float* row = p.cos_sin + token * p.cos_sin_stride;
  const AnyFloatsOut& to = is_q ? p.q : is_rotated ? p.k_cache : p.v_cache;
  const int64_t at =
      is_q ? token * p.q_stride + head * p.q_head_stride
           : (int64_t{p.slots[token]} * p.num_kv_heads + kv_head % p.num_kv_heads) * p.head_dim;
  const AnyFloats& norm = is_q ? p.q_norm : p.k_norm;
  const bool is_normed = is_rotated && norm.data != nullptr;
  const float factor = is_normed ? head_factor(from, p.head_dim, p.norm_eps) : 1.f;
  for (int j = static_cast<int>(threadIdx.x) % kWarp; j < half; j += kWarp) {
    float low = from[j], high = from[j + half];
    if (is_normed) low = low * factor * norm[j], high = high * factor * norm[j + half];
    if (is_rotated) {
      const float c = row[j], s = row[half + j], first = low, second = high;
      low = first * c - second * s;
      high = second * c + first * s;
    }
    to.set(at + j, low);
    to.set(at + j + half, high);
  }
}

}  // namespace

void rope_table(Stream& stream, const RopeTableArgs& a) {
  const auto num_pairs = static_cast<int>(a.inv_frequencies.size());
  CHECK_LE(num_pairs, kMaxPairs, "rotary pairs");
  TableParams p{.positions = a.positions.ptr<int32_t>(),
                .cos_sin = a.cos_sin.ptr<float>(),
                .stride = a.cos_sin.stride(0),
                .num_pairs = num_pairs,
                .attention_factor = a.attention_factor,
                .inv_frequencies = {}};
  std::copy(a.inv_frequencies.begin(), a.inv_frequencies.end(), p.inv_frequencies);
  launch(stream, "rope_table", rope_table_kernel,
         {.grid = dim3(static_cast<unsigned>(a.positions.size(0))),
          .block = dim3(static_cast<unsigned>(num_pairs))},
         p);
}

void rope_kv_write(Stream& stream, const RopeKvWriteArgs& a) {
  const auto q_heads = static_cast<int>(a.q.size(1)),
             kv_heads = static_cast<int>(a.k_cache.size(2));
  const int64_t num_heads = q_heads + 2 * kv_heads;
  launch(stream, "rope_kv_write", rope_kv_write_kernel,
         {.grid = dim3(static_cast<unsigned>(a.q.size(0)),
                       static_cast<unsigned>(ceil_div(num_heads, kThreads / kWarp))),
          .block = dim3(kThreads)},
         WriteParams{.qkv = a.qkv.ptr<float>(),
                     .cos_sin = a.cos_sin.ptr<float>(),
                     .slots = a.slots.ptr<int32_t>(),
                     .q = any_floats_out(a.q),
                     .k_cache = any_floats_out(a.k_cache),
                     .v_cache = any_floats_out(a.v_cache),
                     .q_norm = any_floats(a.q_norm),
                     .k_norm = any_floats(a.k_norm),
                     .qkv_stride = a.qkv.stride(0),
                     .cos_sin_stride = a.cos_sin.stride(0),
                     .q_stride = a.q.stride(0),
                     .q_head_stride = a.q.stride(1),
                     .num_q_heads = q_heads,
                     .num_kv_heads = kv_heads,
                     .head_dim = static_cast<int>(a.q.size(2)),
                     .norm_eps = a.norm_eps});
}

}  // namespace briar::sm90

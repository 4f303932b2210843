// Attention on tensor cores. A block takes 64 rows of one sequence and KV head, a row being one
// (query, head) pair: the heads of a group share their keys, so decode fills 8 of a tile's rows
// with gpt-oss and prefill all. Where that gives fewer blocks than the GPU holds, the keys are
// split among blocks too, and a second kernel merges the parts.
//
// The sink is an extra term of the denominator, added once, when a row is finished.
#include <algorithm>

#include "kernels/attention/attention_sm90.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/find_tile.cuh"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 64;  // of a block; 16 a warp
constexpr int kKeys = 64;  // of a step
constexpr float kLog2e = 1.44269504f;

struct Params {
  const __nv_bfloat16 *q, *k, *v;
  const int32_t *page_table, *cu_seqlens_q, *seq_lens;
  const float* sinks;
  __nv_bfloat16* out;
  float* parts;  // [num_splits, num_tokens * num_q_heads, head_dim + 2]: sums, maximum, denominator
  int64_t q_stride, q_head_stride, out_stride, out_head_stride, table_stride, page_size, num_rows;
  int num_seqs, num_q_heads, num_kv_heads, num_splits, window;
  float scale_log2;

  __device__ int group() const { return num_q_heads / num_kv_heads; }
  __device__ int num_new(int s) const { return cu_seqlens_q[s + 1] - cu_seqlens_q[s]; }
};

// One of the two rows that a lane holds scores of.
struct Row {
  bool is_valid;
  int64_t token, position;
  int head;
};

__device__ Row row_of(const Params& p, const GroupTile& tile, int row) {
  const int64_t at = tile.tile * kRows + row;
  const int num_new = p.num_new(tile.group), query = static_cast<int>(at / p.group());
  return {query < num_new, p.cu_seqlens_q[tile.group] + query,
          p.seq_lens[tile.group] - num_new + query,
          static_cast<int>(blockIdx.y) * p.group() + static_cast<int>(at % p.group())};
}

struct KeyRange {
  int64_t begin, end;             // keys that any row of the tile may see
  int64_t first_step, last_step;  // of kKeys, of this split
};

__device__ KeyRange keys_of(const Params& p, const GroupTile& tile) {
  const int num_new = p.num_new(tile.group);
  const int64_t oldest = p.seq_lens[tile.group] - num_new;
  const int64_t first = oldest + tile.tile * kRows / p.group();
  const int64_t last =
      oldest + min(int64_t{num_new} - 1, (tile.tile * kRows + kRows - 1) / p.group());
  KeyRange r;
  r.begin = p.window > 0 ? max(int64_t{0}, first - p.window + 1) : 0;
  r.end = last + 1;
  const int64_t begin = r.begin / kKeys, end = (r.end + kKeys - 1) / kKeys;
  const int64_t a_split = (end - begin + p.num_splits - 1) / p.num_splits;
  r.first_step = begin + blockIdx.z * a_split;
  r.last_step = min(end, r.first_step + a_split);
  return r;
}

// Row strides that keep the fragment loads free of bank conflicts: 16-byte loads of two rows at a
// time for k, eight rows at a time (ldmatrix) for v.
template <int kDim>
struct Stage {
  __nv_bfloat16 k[kKeys][kDim + 32];
  __nv_bfloat16 v[kKeys][kDim + 8];
};

template <int kDim>
__device__ void load_keys(const Params& p, const GroupTile& tile, const KeyRange& r, int64_t step,
                          Stage<kDim>& stage) {
  constexpr int kWords = kDim / 8, kKeysAtOnce = kThreads / kWords;
  const int word = static_cast<int>(threadIdx.x) % kWords;
  for (int i = static_cast<int>(threadIdx.x) / kWords; i < kKeys; i += kKeysAtOnce) {
    const int64_t key = step * kKeys + i;
    const bool is_seen = key >= r.begin && key < r.end;
    int64_t at = 0;
    if (is_seen) {
      const int64_t page = p.page_table[tile.group * p.table_stride + key / p.page_size];
      at = ((page * p.page_size + key % p.page_size) * p.num_kv_heads + blockIdx.y) * kDim;
    }
    copy_async(&stage.k[i][8 * word], p.k + at + 8 * word, is_seen);
    copy_async(&stage.v[i][8 * word], p.v + at + 8 * word, is_seen);
  }
}

__device__ inline void load_transposed(uint32_t (&out)[4], const __nv_bfloat16* row) {
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(from));
}

// What a warp keeps of its 16 rows. A lane holds two: g and g + 8.
template <int kDim>
struct Accumulator {
  float sums[kDim / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};  // of the scores times log2(e)
  float denominator[2] = {0.f, 0.f};          // this lane's keys only, until finish()
};

using Scores = float[kKeys / 8][4];

// Two rows' 16-byte pieces: k is numbered so that a lane's share of it is consecutive.
template <int kDim>
__device__ void load_q(const Params& p, const Row (&rows)[2], uint4 (&q)[kDim / 32][2]) {
#pragma unroll
  for (int c = 0; c < kDim / 32; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      q[c][i] = make_uint4(0, 0, 0, 0);
      if (rows[i].is_valid) {
        q[c][i] = *reinterpret_cast<const uint4*>(p.q + rows[i].token * p.q_stride +
                                                  rows[i].head * p.q_head_stride + 32 * c +
                                                  8 * (threadIdx.x % 4));
      }
    }
  }
}

template <int kDim>
__device__ void multiply_q_k(const uint4 (&q)[kDim / 32][2], const Stage<kDim>& stage,
                             Scores& scores) {
  const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
    for (float& score : scores[j]) score = 0.f;
#pragma unroll
    for (int c = 0; c < kDim / 32; ++c) {
      const uint4 k = *reinterpret_cast<const uint4*>(&stage.k[8 * j + g][32 * c + 8 * t]);
      const uint32_t a0[4] = {q[c][0].x, q[c][1].x, q[c][0].y, q[c][1].y}, b0[2] = {k.x, k.y};
      const uint32_t a1[4] = {q[c][0].z, q[c][1].z, q[c][0].w, q[c][1].w}, b1[2] = {k.z, k.w};
      mma(scores[j], a0, b0);
      mma(scores[j], a1, b1);
    }
  }
}

// Scores become weights, relative to the new maximum; the accumulator shrinks to it.
template <int kDim>
__device__ void softmax_step(const Params& p, const Row (&rows)[2], int64_t first_key,
                             Scores& scores, Accumulator<kDim>& acc) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int64_t last = rows[i].position;
    const int64_t first = p.window > 0 ? last - p.window + 1 : 0;
    float largest = acc.largest[i];
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int64_t key = first_key + 8 * j + 2 * t + c;
        float& score = scores[j][2 * i + c];
        score = key >= first && key <= last ? score * p.scale_log2 : -INFINITY;
        largest = fmaxf(largest, score);
      }
    }
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    // Nothing visible so far: any finite reference will do, all weights are zero.
    const float reference = largest == -INFINITY ? 0.f : largest;
    const float shrink = exp2f(acc.largest[i] - reference);
    acc.largest[i] = largest;
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& score = scores[j][2 * i + c];
        score = exp2f(score - reference);
        sum += score;
      }
    }
    acc.denominator[i] = acc.denominator[i] * shrink + sum;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      acc.sums[n][2 * i] *= shrink;
      acc.sums[n][2 * i + 1] *= shrink;
    }
  }
}

template <int kDim>
__device__ void multiply_weights_v(const Scores& weights, const Stage<kDim>& stage,
                                   Accumulator<kDim>& acc) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    const float(&low)[4] = weights[2 * step];
    const float(&high)[4] = weights[2 * step + 1];
    const uint32_t a[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]),
                           pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < kDim / 16; ++n) {
      uint32_t b[4];
      load_transposed(b, &stage.v[16 * step + lane / 8 % 2 * 8 + lane % 8][16 * n + lane / 16 * 8]);
      const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
      mma(acc.sums[2 * n], a, b0);
      mma(acc.sums[2 * n + 1], a, b1);
    }
  }
}

// The factor that makes sums into the result: the sink joins the denominator here.
__device__ float final_factor(float largest, float denominator, const float* sinks, int head) {
  if (sinks == nullptr) return 1.f / denominator;
  const float sink = sinks[head] * kLog2e, reference = fmaxf(largest, sink);
  const float shrink = exp2f(largest - reference);
  return shrink / (denominator * shrink + exp2f(sink - reference));
}

template <int kDim>
__device__ void finish(const Params& p, const Row (&rows)[2], Accumulator<kDim>& acc) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float denominator = acc.denominator[i];
    denominator += __shfl_xor_sync(kAllLanes, denominator, 1);
    denominator += __shfl_xor_sync(kAllLanes, denominator, 2);
    if (!rows[i].is_valid) continue;
    if (p.num_splits > 1) {
      const int64_t row = rows[i].token * p.num_q_heads + rows[i].head;
      float* part = p.parts + (blockIdx.z * p.num_rows + row) * (kDim + 2);
      for (int n = 0; n < kDim / 8; ++n) {
        part[8 * n + 2 * t] = acc.sums[n][2 * i];
        part[8 * n + 2 * t + 1] = acc.sums[n][2 * i + 1];
      }
      if (t == 0) part[kDim] = acc.largest[i], part[kDim + 1] = denominator;
      continue;
    }
    const float factor = final_factor(acc.largest[i], denominator, p.sinks, rows[i].head);
    __nv_bfloat16* out = p.out + rows[i].token * p.out_stride + rows[i].head * p.out_head_stride;
    for (int n = 0; n < kDim / 8; ++n) {
      store(out + 8 * n + 2 * t, acc.sums[n][2 * i] * factor);
      store(out + 8 * n + 2 * t + 1, acc.sums[n][2 * i + 1] * factor);
    }
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) attention_tiled_kernel(Params p) {
  extern __shared__ uint4 shared[];
  auto* stages = reinterpret_cast<Stage<kDim>*>(shared);
  wait_for_previous_kernel();
  const GroupTile tile = find_tile(p.num_seqs, blockIdx.x, [&](int s) {
    return (int64_t{p.num_new(s)} * p.group() + kRows - 1) / kRows;
  });
  if (tile.group < 0) return;
  const int row =
      static_cast<int>(threadIdx.x) / kWarp * 16 + static_cast<int>(threadIdx.x) % kWarp / 4;
  const Row rows[2] = {row_of(p, tile, row), row_of(p, tile, row + 8)};
  const KeyRange range = keys_of(p, tile);
  uint4 q[kDim / 32][2];
  load_q<kDim>(p, rows, q);
  Accumulator<kDim> acc;
  if (range.first_step < range.last_step) {
    load_keys<kDim>(p, tile, range, range.first_step, stages[0]);
  }
  copy_async_commit();
  for (int64_t step = range.first_step; step < range.last_step; ++step) {
    const Stage<kDim>& stage = stages[(step - range.first_step) % 2];
    if (step + 1 < range.last_step) {
      load_keys<kDim>(p, tile, range, step + 1, stages[(step + 1 - range.first_step) % 2]);
    }
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    Scores scores;
    multiply_q_k<kDim>(q, stage, scores);
    softmax_step<kDim>(p, rows, step * kKeys, scores, acc);
    multiply_weights_v<kDim>(scores, stage, acc);
    __syncthreads();  // before this stage is filled again
  }
  finish<kDim>(p, rows, acc);
}

// One block a (token, head), a thread an element.
template <int kDim>
__global__ void attention_merge_kernel(Params p) {
  wait_for_previous_kernel();
  const int64_t row = blockIdx.x;
  const int d = static_cast<int>(threadIdx.x);
  const auto part = [&](int split) { return p.parts + (split * p.num_rows + row) * (kDim + 2); };
  float largest = -INFINITY, denominator = 0.f, sum = 0.f;
  for (int s = 0; s < p.num_splits; ++s) largest = fmaxf(largest, part(s)[kDim]);
  const float reference = largest == -INFINITY ? 0.f : largest;
  for (int s = 0; s < p.num_splits; ++s) {
    const float* from = part(s);
    const float weight = exp2f(from[kDim] - reference);
    denominator = fmaf(from[kDim + 1], weight, denominator);
    sum = fmaf(from[d], weight, sum);
  }
  const int head = static_cast<int>(row % p.num_q_heads);
  store(p.out + row / p.num_q_heads * p.out_stride + head * p.out_head_stride + d,
        sum * final_factor(reference, denominator, p.sinks, head));
}

int choose_splits(Stream& stream, const AttentionArgs& a, int64_t num_blocks, int64_t part_bytes) {
  const int64_t max_keys = a.page_table.size(1) * a.k_cache.size(1);
  const int64_t keys = a.window > 0 ? std::min<int64_t>(max_keys, a.window + kKeys) : max_keys;
  const int64_t wanted = 2 * num_multiprocessors(stream) / std::max<int64_t>(num_blocks, 1);
  const int64_t most =
      std::min({ceil_div(keys, kKeys), kCudaScratchBytes / part_bytes, int64_t{64}});
  return static_cast<int>(std::max<int64_t>(1, std::min(wanted, most)));
}

template <int kDim>
void launch_for(Stream& stream, const AttentionArgs& a) {
  const int64_t kv_heads = a.k_cache.size(2), num_rows = a.q.size(0) * a.q.size(1);
  if (num_rows == 0) return;
  const int64_t max_tiles = num_rows / kv_heads / kRows + a.seq_lens.size(0);
  const int64_t part_bytes = num_rows * (kDim + 2) * int64_t{sizeof(float)};
  const int splits = choose_splits(stream, a, max_tiles * kv_heads, part_bytes);
  const Params p{.q = static_cast<const __nv_bfloat16*>(a.q.data()),
                 .k = static_cast<const __nv_bfloat16*>(a.k_cache.data()),
                 .v = static_cast<const __nv_bfloat16*>(a.v_cache.data()),
                 .page_table = a.page_table.ptr<int32_t>(),
                 .cu_seqlens_q = a.cu_seqlens_q.ptr<int32_t>(),
                 .seq_lens = a.seq_lens.ptr<int32_t>(),
                 .sinks = a.sinks ? a.sinks.ptr<float>() : nullptr,
                 .out = static_cast<__nv_bfloat16*>(a.out.data()),
                 .parts = splits > 1
                              ? static_cast<float*>(cuda_scratch(stream, splits * part_bytes))
                              : nullptr,
                 .q_stride = a.q.stride(0),
                 .q_head_stride = a.q.stride(1),
                 .out_stride = a.out.stride(0),
                 .out_head_stride = a.out.stride(1),
                 .table_stride = a.page_table.stride(0),
                 .page_size = a.k_cache.size(1),
                 .num_rows = num_rows,
                 .num_seqs = static_cast<int>(a.seq_lens.size(0)),
                 .num_q_heads = static_cast<int>(a.q.size(1)),
                 .num_kv_heads = static_cast<int>(kv_heads),
                 .num_splits = splits,
                 .window = a.window,
                 .scale_log2 = a.scale * kLog2e};
  launch(stream, "attention_tiled", attention_tiled_kernel<kDim>,
         {.grid = dim3(static_cast<unsigned>(max_tiles), static_cast<unsigned>(kv_heads),
                       static_cast<unsigned>(splits)),
          .block = dim3(kThreads),
          .shared_bytes = 2 * int64_t{sizeof(Stage<kDim>)}},
         p);
  if (splits == 1) return;
  launch(stream, "attention_merge", attention_merge_kernel<kDim>,
         {.grid = dim3(static_cast<unsigned>(num_rows)), .block = dim3(kDim)}, p);
}

}  // namespace

void attention_tiled(Stream& stream, const AttentionArgs& a) {
  if (a.q.size(2) == 64) return launch_for<64>(stream, a);
  CHECK_EQ(a.q.size(2), 128, "head_dim");
  launch_for<128>(stream, a);
}

void attention(Stream& stream, const AttentionArgs& a) {
  const int64_t dim = a.q.size(2);
  const bool is_bf16 = a.q.dtype() == DType::kBf16 && a.k_cache.dtype() == DType::kBf16;
  const bool is_aligned = a.q.stride(0) % 8 == 0 && a.q.stride(1) % 8 == 0 &&
                          reinterpret_cast<uintptr_t>(a.q.data()) % 16 == 0 &&
                          reinterpret_cast<uintptr_t>(a.k_cache.data()) % 16 == 0 &&
                          reinterpret_cast<uintptr_t>(a.v_cache.data()) % 16 == 0;
  if (is_bf16 && is_aligned && (dim == 64 || dim == 128)) return attention_tiled(stream, a);
  attention_any(stream, a);
}

}  // namespace briar::sm90

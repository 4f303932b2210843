// The distribution of sampler.h, one block a row. Bound by what one multiprocessor can read: the
// row comes from DRAM once and from L2 in the passes that filters need. Masses are fixed point, so
// that their sums do not depend on the order of the atomic additions. The filters need no sorting:
// the last kept (logit, id) key is found eight bits at a time from histograms of counts or masses.
// The draw walks ids in ascending order.
#include "kernels/sampling/row_sm90.cuh"
#include "kernels/sampling/sampler.h"

namespace briar::sm90 {
namespace {

constexpr float kLargest = 3.402823466e38f;
constexpr double kMassOne = 0x1p40;  // of the likeliest token; 2^24 of them fit in 64 bits
constexpr int kBins = 256;

struct Params {
  const float* logits;
  const SamplingRow* rows;
  int32_t* token_ids;
  int64_t vocab_size, logits_stride;
};

struct Shared {
  uint64_t partial[kRowWarps];
  unsigned long long bins[kBins];
  unsigned counts[kBins];
  uint64_t chosen;  // bits of the key found so far
  uint64_t above;   // amount of the keys above them
  bool is_unique;   // one key only has these bits
  uint64_t before;  // mass of the warps before the one that holds the token
  int warp;
};

struct RowView {
  const float* logits;
  int64_t n;
  float largest, inv_temperature;

  __device__ uint64_t key(int64_t i) const {
    return order_key(logits[i], static_cast<uint32_t>(i));
  }
  __device__ float weight(int64_t i) const { return expf((logits[i] - largest) * inv_temperature); }
  __device__ uint64_t mass(int64_t i) const {
    return static_cast<uint64_t>(static_cast<double>(weight(i)) * kMassOne);
  }
};

// The smallest key that is kept when keys from the top are kept until their amounts reach `target`
// (at least one is). amount(i): 1 for top-k, the mass for top-p; keys below `floor` do not count.
template <class Amount>
__device__ __forceinline__ uint64_t last_kept(const RowView& row, uint64_t floor, uint64_t target,
                                              const Amount& amount, Shared& s) {
  if (threadIdx.x == 0) s.chosen = 0, s.above = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kRowThreads) {
      s.bins[b] = 0, s.counts[b] = 0;
    }
    __syncthreads();
    const uint64_t chosen = s.chosen;
    for (int64_t i = threadIdx.x; i < row.n; i += kRowThreads) {
      const uint64_t key = row.key(i);
      const bool matches = shift == 56 || (key ^ chosen) >> (shift + 8) == 0;
      if (!matches || key < floor) continue;
      atomicAdd(&s.bins[key >> shift & 0xff], static_cast<unsigned long long>(amount(i)));
      atomicAdd(&s.counts[key >> shift & 0xff], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int found = -1;  // the bin that reaches the target, or the lowest that holds anything
      uint64_t above = s.above, above_found = above;
      for (int b = kBins - 1; b >= 0; --b) {
        if (s.counts[b] == 0) continue;
        found = b, above_found = above;
        above += s.bins[b];
        if (above >= target) break;
      }
      s.chosen |= static_cast<uint64_t>(found) << shift;
      s.above = above_found;
      s.is_unique = s.counts[found] == 1;
    }
    __syncthreads();
    if (s.is_unique) {  // lower bits of a lone key do not matter: all below it differ above them
      return s.chosen;
    }
  }
  return s.chosen;
}

template <class IsKept>
__device__ __forceinline__ uint64_t total_mass(const RowView& row, const IsKept& is_kept,
                                               Shared& s) {
  uint64_t mass = 0;
  for (int64_t i = threadIdx.x; i < row.n; i += kRowThreads) {
    if (is_kept(i)) mass += row.mass(i);
  }
  return block_total(mass, s.partial);
}

// The first id at which the running mass of kept ids passes `u` of all of it. Each warp owns a run
// of ids.
template <class IsKept>
__device__ __forceinline__ int32_t draw(const RowView& row, double u, const IsKept& is_kept,
                                        Shared& s) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  const int64_t share = (row.n + kRowWarps - 1) / kRowWarps;
  const int64_t begin = min(row.n, warp * share), end = min(row.n, begin + share);
  uint64_t mine = 0;
  for (int64_t i = begin + lane; i < end; i += kWarp) mine += is_kept(i) ? row.mass(i) : 0;
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_xor_sync(kAllLanes, mine, offset);
  __syncthreads();
  if (lane == 0) s.partial[warp] = mine;
  __syncthreads();
  uint64_t all = 0, before = 0;
  for (int w = 0; w < kRowWarps; ++w) all += s.partial[w];
  const auto target = min(static_cast<uint64_t>(u * static_cast<double>(all)), all - 1);
  int winner = 0;
  while (before + s.partial[winner] <= target) before += s.partial[winner++];
  if (warp != winner) return -1;
  for (int64_t first = begin; first < end; first += kWarp) {
    const int64_t i = first + lane;
    uint64_t through = i < end && is_kept(i) ? row.mass(i) : 0;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const uint64_t other = __shfl_up_sync(kAllLanes, through, offset);
      if (lane >= offset) through += other;
    }
    const unsigned ballot = __ballot_sync(kAllLanes, before + through > target);
    if (ballot != 0) return static_cast<int32_t>(first + __ffs(static_cast<int>(ballot)) - 1);
    before += __shfl_sync(kAllLanes, through, kWarp - 1);
  }
  return -1;  // not reached: the target lies in this warp's run
}

__device__ __forceinline__ int32_t sample(const RowView& row, const SamplingRow& parameters,
                                          uint64_t best, Shared& s) {
  uint64_t floor = 0;
  if (parameters.top_k > 0 && parameters.top_k < row.n) {
    floor = last_kept(
        row, 0, static_cast<uint64_t>(parameters.top_k), [](int64_t) { return uint64_t{1}; }, s);
  }
  if (parameters.top_p < 1.f) {
    const uint64_t mass = total_mass(
        row, [&](int64_t i) { return row.key(i) >= floor; }, s);
    const auto target = static_cast<uint64_t>(double{parameters.top_p} * static_cast<double>(mass));
    const uint64_t last = last_kept(
        row, floor, max(target, uint64_t{1}), [&](int64_t i) { return row.mass(i); }, s);
    floor = max(floor, last);
  }
  const auto is_kept = [&](int64_t i) {
    const uint64_t key = row.key(i);
    return key == best || (key >= floor && row.weight(i) >= parameters.min_p);
  };
  return draw(row, uniform(parameters.random), is_kept, s);
}

__global__ void __launch_bounds__(kRowThreads, 1) sampler_kernel(Params p) {
  __shared__ Shared s;
  wait_for_previous_kernel();
  const float* logits = p.logits + blockIdx.x * p.logits_stride;
  const SamplingRow parameters = p.rows[blockIdx.x];
  const uint64_t best = best_of_row(logits, p.vocab_size, ~uint64_t{0}, s.partial);
  const auto best_id = static_cast<int32_t>(id_of_key(best));
  const float largest = logits[best_id];
  int32_t id = best_id;
  // An infinite logit has all the mass; a row of minus infinities has none, and no distribution.
  if (is_nan_key(best)) {
    id = -1;
  } else if (parameters.temperature != 0.f && !isinf(largest)) {
    const RowView row{logits, p.vocab_size, largest, fminf(1.f / parameters.temperature, kLargest)};
    id = sample(row, parameters, best, s);
    if (id < 0) return;  // another warp has it
  } else if (threadIdx.x != 0) {
    return;
  }
  if (threadIdx.x % kWarp == 0) p.token_ids[blockIdx.x] = id;
}

}  // namespace

void sampler(Stream& stream, const SamplerArgs& a) {
  launch(stream, "sampler", sampler_kernel,
         {.grid = dim3(static_cast<unsigned>(a.token_ids.size(0))), .block = dim3(kRowThreads)},
         Params{a.logits.ptr<float>(), a.rows, a.token_ids.ptr<int32_t>(), a.vocab_size,
                a.logits.stride(0)});
}

}  // namespace briar::sm90

#include "kernels/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/sampling/softmax_cpu.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void sampler(Stream& stream, const SamplerArgs& args))
namespace {

// Instead of the infinite reciprocal of a denormal temperature, which would make 0 * infinity.
constexpr float kLargest = std::numeric_limits<float>::max();

// The id at which the running sum of weights passes `target`. Rounding can leave the target at the
// very end: then the last id with any weight is the answer.
template <class IdOf>
int32_t pick(int64_t n, const float* weights, double target, const IdOf& id_of) {
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (weights[id_of(i)] == 0.f) continue;
    last = i;
    sum += weights[id_of(i)];
    if (sum > target) break;
  }
  return static_cast<int32_t>(id_of(last));
}

// So many ids are picked from all with a heap; more are selected first and sorted then.
constexpr int64_t kHeapSorted = 1024;

// Ids sorted by weight, likeliest first, as many as the filters keep.
std::vector<int32_t> filtered_ids(const std::vector<float>& weights, double total,
                                  const SamplingRow& row) {
  // Without top-k, ids below min_p or too light to be needed for top_p (all ids of less than
  // (1 - top_p) / n of the mass together hold less than 1 - top_p of it; half of that, to be clear
  // of rounding) need no place in the order. The likeliest token has weight 1.
  const double tail = 0.5 * (1 - double{row.top_p}) * total / static_cast<double>(weights.size());
  const float lightest =
      row.top_k > 0 ? 0.f : std::min(1.f, std::max(row.min_p, static_cast<float>(tail)));
  std::vector<int32_t> ids(weights.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (lightest > 0) {
    std::erase_if(ids, [&](int32_t id) { return weights[id] < lightest; });
  }
  const auto n = static_cast<int64_t>(ids.size());
  auto is_likelier = [&](int32_t a, int32_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  const int64_t limit = row.top_k > 0 ? std::min<int64_t>(row.top_k, n) : n;
  // Sorts only as far as needed: most distributions fill top_p within a few hundred tokens.
  int64_t sorted = 0;
  auto sort_to = [&](int64_t count) {
    const auto from = ids.begin() + sorted, to = ids.begin() + count;
    if (count - sorted <= kHeapSorted) {
      std::partial_sort(from, to, ids.end(), is_likelier);
    } else {  // a flat distribution
      std::nth_element(from, to, ids.end(), is_likelier);
      std::sort(from, to, is_likelier);
    }
    sorted = count;
  };
  if (row.top_k > 0) {
    sort_to(limit);
    total = 0;
    for (int64_t i = 0; i < limit; ++i) total += weights[ids[i]];
  }
  double mass = 0;
  int64_t kept = 0;
  const bool filters_mass = row.top_p < 1;
  while (kept < limit) {
    if (kept == sorted) sort_to(std::min(limit, std::max<int64_t>(256, sorted * 4)));
    // exp_row() gave the likeliest token the weight 1.
    if (weights[ids[kept]] < row.min_p) break;
    mass += weights[ids[kept++]];
    if (filters_mass && mass >= row.top_p * total) break;
  }
  ids.resize(static_cast<size_t>(std::max<int64_t>(kept, 1)));
  return ids;
}

int32_t sample_row(const float* logits, int64_t vocab_size, const SamplingRow& row) {
  const RowPeak peak = BRIAR_CALL_CPU_KERNEL(row_peak, logits, vocab_size);
  if (peak.has_nan) return -1;
  // An infinite logit has all the mass; a row of minus infinities has none, and no distribution.
  if (row.temperature == 0.f || std::isinf(peak.max)) return peak.id;
  std::vector<float> weights(static_cast<size_t>(vocab_size));
  const double total =
      BRIAR_CALL_CPU_KERNEL(exp_row, logits, vocab_size, peak.max,
                            std::min(1.f / row.temperature, kLargest), weights.data());
  const double u = uniform(row.random);
  if (row.top_k <= 0 && row.top_p >= 1 && row.min_p <= 0) {
    return pick(vocab_size, weights.data(), u * total, [](int64_t i) { return i; });
  }
  const std::vector<int32_t> ids = filtered_ids(weights, total, row);
  double kept = 0;
  for (const int32_t id : ids) kept += weights[id];
  return pick(static_cast<int64_t>(ids.size()), weights.data(), u * kept,
              [&](int64_t i) { return int64_t{ids[static_cast<size_t>(i)]}; });
}

}  // namespace

void sampler(Stream& stream, const SamplerArgs& a) {
  ShapeCheck s("sampler");
  s("logits", a.logits, {DType::kFp32}, {"num_rows", "padded_vocab"});
  s("token_ids", a.token_ids, {DType::kInt32}, {"num_rows"});
  CHECK(a.vocab_size >= 1 && a.vocab_size <= s["padded_vocab"], "vocab_size={} of {} columns",
        a.vocab_size, s["padded_vocab"]);
  BRIAR_RETURN_IF_CUDA(sampler, stream, a);
  auto task = [&](int64_t row) {
    const float* logits = a.logits.ptr<float>() + row * a.logits.stride(0);
    a.token_ids.ptr<int32_t>()[row] = sample_row(logits, a.vocab_size, a.rows[row]);
  };
  cpu_thread_pool(stream).run(s["num_rows"], task);
}

}  // namespace briar

#include "kernels/sampling/softmax_cpu.h"

#include "kernels/cpu/vec.h"

namespace briar::BRIAR_ISA {

RowPeak row_peak(const float* logits, int64_t n) {
  Vec max = Vec::all(-__builtin_inff()), ordered = Vec::zero();
  const Vec one = Vec::all(1.f);
  int64_t num_ordered = 0;
  // Lanes of `ordered` count exactly up to 2^24; a vocabulary is far smaller.
  for_lanes(
      n,
      [&](int64_t i) {
        const Vec x = Vec::load(logits + i);
        max = x.max(max);
        ordered = ordered + keep_where_ge(x, x, one);
      },
      [&](int64_t i, int lanes) {
        for (int j = 0; j < lanes; ++j) {
          max = Vec::all(logits[i + j]).max(max);
          num_ordered += logits[i + j] == logits[i + j] ? 1 : 0;
        }
      });
  num_ordered += static_cast<int64_t>(ordered.sum());
  RowPeak peak{.max = max.max_lane(), .id = 0, .has_nan = num_ordered != n};
  if (peak.has_nan) return peak;
  int64_t i = 0;
  while (i + Vec::kLanes <= n && !any_ge(Vec::load(logits + i), Vec::all(peak.max)))
    i += Vec::kLanes;
  while (i < n && logits[i] != peak.max) ++i;
  peak.id = static_cast<int32_t>(i);
  return peak;
}

double exp_row(const float* logits, int64_t n, float max, float scale, float* out) {
  // fp32 within a run of 2048, fp64 across runs: the error of the sum stays near that of one term.
  constexpr int64_t kRun = 2048;
  const Vec peak = Vec::all(max), factor = Vec::all(scale);
  double total = 0;
  for (int64_t run = 0; run < n; run += kRun) {
    const int64_t count = n - run < kRun ? n - run : kRun;
    Vec sum = Vec::zero();
    for_lanes(
        count,
        [&](int64_t i) {
          const Vec e = exp((Vec::load(logits + run + i) - peak) * factor);
          if (out != nullptr) e.store(out + run + i);
          sum = sum + e;
        },
        [&](int64_t i, int lanes) {
          const Vec e = exp((Vec::load_first(logits + run + i, lanes) - peak) * factor);
          alignas(64) float terms[Vec::kLanes];
          e.store(terms);
          for (int j = 0; j < lanes; ++j) {
            if (out != nullptr) out[run + i + j] = terms[j];
            total += terms[j];
          }
        });
    total += sum.sum();
  }
  return total;
}

void top_of_row(const float* values, int64_t n, int32_t count, int32_t* ids, float* best) {
  int32_t have = 0;
  auto insert = [&](int64_t i) {
    const float value = values[i];
    if (have == count && !(value > best[count - 1])) return;
    int32_t at = have < count ? have++ : count - 1;
    for (; at > 0 && value > best[at - 1]; --at) {
      best[at] = best[at - 1];
      ids[at] = ids[at - 1];
    }
    best[at] = value;
    ids[at] = static_cast<int32_t>(i);
  };
  for_lanes(
      n,
      [&](int64_t i) {
        // Nearly every register holds nothing that enters the list.
        if (have == count && !any_ge(Vec::load(values + i), Vec::all(best[count - 1]))) return;
        for (int64_t j = i; j < i + Vec::kLanes; ++j) insert(j);
      },
      [&](int64_t i, int lanes) {
        for (int64_t j = i; j < i + lanes; ++j) insert(j);
      });
}

}  // namespace briar::BRIAR_ISA

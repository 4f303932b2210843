// The distribution that a row is drawn from.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/sampling/sampler.h"

namespace briar {

inline std::vector<double> sampler_ref(std::span<const float> logits, const SamplingRow& row) {
  std::vector<size_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), size_t{0});
  std::stable_sort(ids.begin(), ids.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (row.temperature == 0) ids.resize(1);
  if (row.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(row.top_k)));
  std::vector<double> p(logits.size(), 0.0);
  const auto normalise = [&] {
    double sum = 0;
    for (const size_t id : ids) sum += p[id];
    for (const size_t id : ids) p[id] /= sum;
  };
  const double temperature = row.temperature == 0 ? 1 : double{row.temperature};
  for (const size_t id : ids)
    p[id] = std::exp((double{logits[id]} - double{logits[ids[0]]}) / temperature);
  normalise();
  double mass = 0;
  std::vector<double> kept(logits.size(), 0.0);
  for (const size_t id : ids) {
    if (mass < row.top_p && p[id] >= row.min_p * p[ids[0]]) kept[id] = p[id];
    mass += p[id];
  }
  kept[ids[0]] = p[ids[0]];  // the likeliest stays whatever the filters
  p = kept;
  normalise();
  return p;
}

}  // namespace briar

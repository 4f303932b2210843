// YaRN frequencies (fp64) and the half-split rotation of one head.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace briar {

struct YarnRefParams {
  int dim;
  double theta, factor, beta_fast, beta_slow, original_max;
  bool truncate;
};

// Pair i turns r(i) = original_max / wavelength(i) times over the original context. More than
// beta_fast turns: frequency kept; fewer than beta_slow: divided by factor; a linear ramp over i in
// between, whose ends are rounded outwards if `truncate`.
inline std::vector<double> yarn_frequencies_ref(const YarnRefParams& p) {
  std::vector<double> out;
  const auto pair_with_turns = [&](double turns) {  // solves r(i) = turns
    return std::log(p.original_max / (turns * 2 * std::numbers::pi)) / std::log(p.theta) * p.dim /
           2;
  };
  double low = pair_with_turns(p.beta_fast), high = pair_with_turns(p.beta_slow);
  if (p.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, p.dim - 1.0);
  if (low == high) high += 0.001;
  for (int i = 0; i < p.dim / 2; ++i) {
    const double frequency = std::exp(-std::log(p.theta) * 2 * i / p.dim);
    const double slow = std::clamp((i - low) / (high - low), 0.0, 1.0);
    out.push_back(frequency * ((1 - slow) + slow / p.factor));
  }
  return out;
}

// x / sqrt(mean(x^2) + eps) * weight, rounded to fp32 as rotate_ref's input is.
inline std::vector<float> norm_head_ref(std::span<const float> x, std::span<const float> weight,
                                        double eps) {
  double squares = 0;
  for (const float v : x) squares += double{v} * v;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    out.push_back(static_cast<float>(x[i] * factor * weight[i]));
  }
  return out;
}

// Element i turns together with element i + size / 2.
inline std::vector<double> rotate_ref(std::span<const float> head, std::span<const float> cos_sin) {
  const size_t half = head.size() / 2;
  std::vector<double> out(head.size());
  for (size_t i = 0; i < half; ++i) {
    const double a = head[i], b = head[i + half], c = cos_sin[i], s = cos_sin[half + i];
    out[i] = a * c - b * s;
    out[i + half] = b * c + a * s;
  }
  return out;
}

}  // namespace briar

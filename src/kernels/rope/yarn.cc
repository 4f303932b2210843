#include "kernels/rope/yarn.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace briar {

double yarn_attention_factor(double factor) { return factor > 1 ? 0.1 * std::log(factor) + 1 : 1; }

namespace {

// The (fractional) pair index whose wavelength makes `rotations` full turns over the original
// context.
double pair_with_rotations(const RopeParams& p, double rotations) {
  return p.rotary_dim * std::log(p.original_max_position / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(p.theta));
}

}  // namespace

std::vector<double> rope_inv_frequencies(const RopeParams& p) {
  CHECK(p.rotary_dim > 0 && p.rotary_dim % 2 == 0, "rotary_dim={} must be even and positive",
        p.rotary_dim);
  const int num_pairs = p.rotary_dim / 2;
  std::vector<double> inv_frequencies(static_cast<size_t>(num_pairs));
  double low = 0, high = 0;
  if (p.factor != 1) {
    low = pair_with_rotations(p, p.beta_fast);
    high = pair_with_rotations(p, p.beta_slow);
    if (p.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, p.rotary_dim - 1.0);
    if (low == high) high += 0.001;
  }
  for (int i = 0; i < num_pairs; ++i) {
    const double plain = std::pow(p.theta, -2.0 * i / p.rotary_dim);
    if (p.factor == 1) {
      inv_frequencies[static_cast<size_t>(i)] = plain;
      continue;
    }
    // Fast pairs keep their frequency, slow ones are interpolated by `factor`, a ramp lies between.
    const double interpolated = std::clamp((i - low) / (high - low), 0.0, 1.0);
    inv_frequencies[static_cast<size_t>(i)] =
        plain * (1 - interpolated) + plain / p.factor * interpolated;
  }
  return inv_frequencies;
}

}  // namespace briar

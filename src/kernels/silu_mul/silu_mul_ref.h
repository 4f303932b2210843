// g = x[i];  u = x[n + i];  out[i] = g sigmoid(g) u, for each row of 2 n values
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> silu_mul_ref(std::span<const float> x, int64_t num_rows) {
  std::vector<double> out;
  const size_t n = num_rows == 0 ? 0 : x.size() / static_cast<size_t>(num_rows) / 2;
  for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
    for (size_t i = 0; i < n; ++i) {
      const double g = x[row * 2 * n + i], u = x[row * 2 * n + n + i];
      out.push_back(g / (1 + std::exp(-g)) * u);
    }
  }
  return out;
}

}  // namespace briar

// out[m][n] = bias[n] + sum over k of x[m][k] weight[n][k]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> linear_ref(std::span<const float> x, std::span<const float> weight,
                                      std::span<const float> bias, size_t m, size_t n, size_t k) {
  std::vector<double> out(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0.0 : bias[j];
      for (size_t p = 0; p < k; ++p) sum += double{x[i * k + p]} * double{weight[j * k + p]};
      out[i * n + j] = sum;
    }
  }
  return out;
}

}  // namespace briar

// out[r] = bias[e] + weight[e] x[row_index[r]] for the rows r of [offsets[e], offsets[e + 1])
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> grouped_linear_ref(std::span<const float> x,
                                              std::span<const int32_t> row_index,
                                              std::span<const int32_t> offsets,
                                              std::span<const float> weight,
                                              std::span<const float> bias, size_t n, size_t k) {
  std::vector<double> out;
  for (size_t e = 0; e + 1 < offsets.size(); ++e) {
    for (int32_t r = offsets[e]; r < offsets[e + 1]; ++r) {
      const auto row =
          static_cast<size_t>(row_index.empty() ? r : row_index[static_cast<size_t>(r)]);
      for (size_t j = 0; j < n; ++j) {
        double sum = bias.empty() ? 0.0 : bias[e * n + j];
        for (size_t p = 0; p < k; ++p) {
          sum += double{x[row * k + p]} * double{weight[(e * n + j) * k + p]};
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

}  // namespace briar

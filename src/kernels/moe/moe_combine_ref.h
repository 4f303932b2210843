// out[t] = sum over choices c of weights[t, c] rows[row_of[t, c]]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> moe_combine_ref(std::span<const float> rows,
                                           std::span<const int32_t> row_of,
                                           std::span<const float> weights, size_t choices,
                                           size_t hidden_size) {
  const size_t num_tokens = row_of.size() / choices;
  std::vector<double> out(num_tokens * hidden_size, 0.0);
  for (size_t t = 0; t < num_tokens; ++t) {
    for (size_t c = t * choices; c < (t + 1) * choices; ++c) {
      for (size_t i = 0; i < hidden_size; ++i) {
        out[t * hidden_size + i] +=
            double{weights[c]} * double{rows[static_cast<size_t>(row_of[c]) * hidden_size + i]};
      }
    }
  }
  return out;
}

}  // namespace briar

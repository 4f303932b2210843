// residual += x (rounded to fp32: it is stored as such)
// out = residual / sqrt(mean(residual^2) + eps) * weight
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace briar {

// One row; x may be empty. Updates `residual`.
inline std::vector<double> rms_norm_ref(std::span<const float> x, std::span<float> residual,
                                        std::span<const float> weight, double eps) {
  double squares = 0;
  for (size_t i = 0; i < residual.size(); ++i) {
    if (!x.empty()) residual[i] = static_cast<float>(double{residual[i]} + double{x[i]});
    squares += double{residual[i]} * double{residual[i]};
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(residual.size()) + eps);
  std::vector<double> out;
  for (size_t i = 0; i < residual.size(); ++i) out.push_back(residual[i] * scale * weight[i]);
  return out;
}

}  // namespace briar

// g = min(x[2 i], limit);  u = clamp(x[2 i + 1], -limit, limit);  out[i] = g sigmoid(alpha g) (u +
// 1)
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> swiglu_ref(std::span<const float> x, double alpha, double limit) {
  std::vector<double> out;
  for (size_t i = 0; i + 1 < x.size(); i += 2) {
    double g = x[i], u = x[i + 1];
    if (g > limit) g = limit;
    if (u > limit) u = limit;
    if (u < -limit) u = -limit;
    out.push_back(g / (1 + std::exp(-alpha * g)) * (u + 1));
  }
  return out;
}

}  // namespace briar

// Block formats of GGUF from their definitions, and out[m][n] = bias[n] + sum x[m][k] weight[n][k].
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/quantized_linear/block_format.h"

namespace briar {

inline double fp16_ref(const uint8_t* p) {
  const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

// Element i of a block; exact but for the one rounding of a sum.
inline double block_value_ref(BlockFormat format, const uint8_t* b, int i) {
  switch (format) {
    case BlockFormat::kQ8_0: return fp16_ref(b) * static_cast<int8_t>(b[2 + i]);
    case BlockFormat::kQ4_0: return fp16_ref(b) * ((b[2 + i % 16] >> i / 16 * 4 & 15) - 8);
    case BlockFormat::kQ4_1:
      return fp16_ref(b) * (b[4 + i % 16] >> i / 16 * 4 & 15) + fp16_ref(b + 2);
    case BlockFormat::kQ4_K: {
      const int s = i / 32, q = b[16 + i / 64 * 32 + i % 32] >> s % 2 * 4 & 15;
      const uint8_t* p = b + 4;
      const int scale = s < 4 ? p[s] & 63 : (p[s + 4] & 15) + (p[s - 4] >> 6) * 16;
      const int min = s < 4 ? p[s + 4] & 63 : (p[s + 4] >> 4) + (p[s] >> 6) * 16;
      return fp16_ref(b) * scale * q - fp16_ref(b + 2) * min;
    }
    case BlockFormat::kQ6_K: {
      const int half = i / 128, l = i % 128;
      const int low = b[half * 64 + l % 64] >> l / 64 * 4 & 15;
      const int high = b[128 + half * 32 + l % 32] >> l / 32 * 2 & 3;
      return fp16_ref(b + 208) * static_cast<int8_t>(b[192 + i / 16]) * (low + high * 16 - 32);
    }
  }
  return NAN;
}

// The whole matrix, row-major, from its bytes in the file.
inline std::vector<double> dequantize_ref(BlockFormat format, std::span<const uint8_t> source) {
  std::vector<double> out;
  const auto bytes = static_cast<size_t>(block_bytes(format));
  for (size_t at = 0; at < source.size(); at += bytes) {
    for (int i = 0; i < block_size(format); ++i) {
      out.push_back(block_value_ref(format, &source[at], i));
    }
  }
  return out;
}

inline std::vector<double> quantized_linear_ref(std::span<const float> x,
                                                std::span<const double> weight,
                                                std::span<const float> bias, size_t m, size_t n,
                                                size_t k) {
  std::vector<double> out(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0.0 : bias[j];
      for (size_t p = 0; p < k; ++p) sum += double{x[i * k + p]} * weight[j * k + p];
      out[i * n + j] = sum;
    }
  }
  return out;
}

}  // namespace briar

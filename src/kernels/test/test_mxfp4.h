// Random MXFP4 weights beside the same weights as bf16.
#pragma once

#include <cmath>

#include "kernels/test/test_tensor.h"

namespace briar {

// [num_rows, k] in blocks of 32: element = e2m1 * 2^(scale - 127), two a byte, the first in the low
// nibble. `num_groups` > 0 makes it [num_groups, num_rows, k].
struct Mxfp4Weights {
  Mxfp4Weights(int64_t num_groups, int64_t num_rows, int64_t k, uint64_t seed, int min_scale,
               int max_scale)
      : bytes(DType::kUint8, shape(num_groups, num_rows, k / 2)),
        scales(DType::kUint8, shape(num_groups, num_rows, k / 32)),
        expanded(DType::kBf16, shape(num_groups, num_rows, k)),
        view(num_groups > 0
                 ? TensorView(bytes.view().data(), DType::kMxfp4, {num_groups, num_rows, k})
                 : TensorView(bytes.view().data(), DType::kMxfp4, {num_rows, k})) {
    constexpr double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (int64_t i = 0; i < scales.size(); ++i) {
      const auto range = static_cast<uint64_t>(max_scale - min_scale + 1);
      scales.set(
          i, min_scale + static_cast<int>(random_bits(seed + 1, static_cast<uint64_t>(i)) % range));
    }
    for (int64_t i = 0; i < bytes.size(); ++i) {
      const uint64_t byte = random_bits(seed, static_cast<uint64_t>(i)) & 0xff;
      bytes.set(i, static_cast<double>(byte));
      const double scale = std::ldexp(1.0, scales.get_int(i / 16) - 127);
      expanded.set(2 * i, (byte & 8 ? -1 : 1) * kValues[byte & 7] * scale);
      expanded.set(2 * i + 1, (byte & 128 ? -1 : 1) * kValues[byte >> 4 & 7] * scale);
    }
  }
  static std::vector<int64_t> shape(int64_t num_groups, int64_t num_rows, int64_t last) {
    if (num_groups > 0) return {num_groups, num_rows, last};
    return {num_rows, last};
  }

  TestTensor bytes, scales, expanded;
  TensorView view;
};

}  // namespace briar

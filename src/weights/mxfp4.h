// OCP Microscaling FP4 (MXFP4): blocks of 32 E2M1 values, two a byte with the first in the low
// nibble, that share one E8M0 scale byte: value = e2m1 * 2^(scale - 127).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "device/dtype.h"

namespace briar {

inline constexpr int64_t kMxfp4BlockSize = 32;
inline constexpr int64_t kMxfp4BlockBytes = kMxfp4BlockSize / 2;
// E8M0 has no infinity; this code is its NaN.
inline constexpr uint8_t kMxfp4NanScale = 255;
// From this scale on 6 * 2^(scale - 127) exceeds fp32 and bf16.
inline constexpr uint8_t kMxfp4FirstLargeScale = 253;

inline constexpr std::array<float, 16> kMxfp4Values = {
    0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f, -0.f, -0.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};

// 2^(scale - 127); the NaN code gives a NaN.
float mxfp4_scale(uint8_t scale);

// Decodes scales.size() blocks: values holds 16 bytes a block, out 32 elements a block. Exact in
// both forms, except that scales of 253 and 254 can overflow to infinity.
void decode_mxfp4(std::span<const uint8_t> values, std::span<const uint8_t> scales,
                  std::span<float> out);
void decode_mxfp4(std::span<const uint8_t> values, std::span<const uint8_t> scales,
                  std::span<Bf16> out);

// The first block that does not decode to 32 finite numbers: its scale is NaN, or overflows with
// one of its values.
std::optional<int64_t> find_invalid_mxfp4_block(std::span<const uint8_t> values,
                                                std::span<const uint8_t> scales);

}  // namespace briar

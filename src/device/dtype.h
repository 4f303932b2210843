// Element types of tensors, and bf16 conversion.
#pragma once

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace briar {

// kMxfp4: OCP Microscaling FP4 (E2M1): 32 values share one E8M0 scale byte; two values a byte, the
// first in the low nibble. kFp8E4m3: OCP FP8 E4M3FN.
enum class DType : uint8_t { kFp32, kBf16, kFp8E4m3, kMxfp4, kInt32, kUint8 };

const char* to_string(DType dtype);

// Bytes of `count` elements. MXFP4 counts its value nibbles only (scales are a tensor of their
// own).
inline int64_t dtype_bytes(DType dtype, int64_t count) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kInt32: return count * 4;
    case DType::kBf16: return count * 2;
    case DType::kFp8E4m3:
    case DType::kUint8: return count;
    case DType::kMxfp4: return count / 2;
  }
  CHECK(false, "dtype {}", static_cast<int>(dtype));
}

// Storage of one bfloat16.
struct Bf16 {
  uint16_t bits;
};

inline float to_float(Bf16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
inline float to_float(float value) { return value; }

// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
inline Bf16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// The value of an IEEE half, exact: NaN and infinities included.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  // The exponent's bias grows from 15 to 127 by an exact product, which also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t not_finite = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled) | not_finite);
}

}  // namespace briar

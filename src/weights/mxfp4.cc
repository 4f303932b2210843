#include "weights/mxfp4.h"

#include <bit>
#include <cmath>

namespace briar {
namespace {

void store(float value, float& out) { out = value; }
// Exact: an E2M1 value has two significant bits, and bf16 has the exponents of fp32.
void store(float value, Bf16& out) {
  out.bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

template <class T>
void decode(std::span<const uint8_t> values, std::span<const uint8_t> scales, std::span<T> out) {
  const auto num_blocks = static_cast<int64_t>(scales.size());
  CHECK_EQ(static_cast<int64_t>(values.size()), num_blocks * kMxfp4BlockBytes,
           "MXFP4 values of {} blocks", num_blocks);
  CHECK_EQ(static_cast<int64_t>(out.size()), num_blocks * kMxfp4BlockSize,
           "room for the values of {} MXFP4 blocks", num_blocks);
  const uint8_t* from = values.data();
  T* to = out.data();
  for (const uint8_t scale_code : scales) {
    const float scale = mxfp4_scale(scale_code);
    std::array<T, 16> scaled;
    for (size_t i = 0; i < 16; ++i) store(kMxfp4Values[i] * scale, scaled[i]);
    for (int64_t i = 0; i < kMxfp4BlockBytes; ++i) {
      to[2 * i] = scaled[from[i] & 0xf];
      to[2 * i + 1] = scaled[from[i] >> 4];
    }
    from += kMxfp4BlockBytes;
    to += kMxfp4BlockSize;
  }
}

}  // namespace

float mxfp4_scale(uint8_t scale) {
  if (scale == kMxfp4NanScale) return std::bit_cast<float>(0x7fc00000u);
  // 2^-127 is subnormal in fp32.
  if (scale == 0) return std::bit_cast<float>(0x00400000u);
  return std::bit_cast<float>(uint32_t{scale} << 23);
}

void decode_mxfp4(std::span<const uint8_t> values, std::span<const uint8_t> scales,
                  std::span<float> out) {
  decode(values, scales, out);
}

void decode_mxfp4(std::span<const uint8_t> values, std::span<const uint8_t> scales,
                  std::span<Bf16> out) {
  decode(values, scales, out);
}

std::optional<int64_t> find_invalid_mxfp4_block(std::span<const uint8_t> values,
                                                std::span<const uint8_t> scales) {
  CHECK_EQ(values.size(), scales.size() * static_cast<size_t>(kMxfp4BlockBytes),
           "MXFP4 values of {} blocks", scales.size());
  for (size_t block = 0; block < scales.size(); ++block) {
    if (scales[block] < kMxfp4FirstLargeScale) continue;
    std::array<float, kMxfp4BlockSize> decoded;
    decode(values.subspan(block * kMxfp4BlockBytes, kMxfp4BlockBytes), scales.subspan(block, 1),
           std::span<float>(decoded));
    for (const float value : decoded) {
      if (!std::isfinite(value)) return static_cast<int64_t>(block);
    }
  }
  return std::nullopt;
}

}  // namespace briar

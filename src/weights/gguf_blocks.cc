#include "weights/gguf_blocks.h"

#include <cstring>

#include "base/check.h"
#include "device/dtype.h"
#include "weights/mxfp4.h"

namespace briar {
namespace {

float half_at(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return half_to_float(bits);
}

// Codes of 16 bytes: low nibbles first.
void unpack_nibbles(const uint8_t* bytes, int count, uint8_t* codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = bytes[i] & 15;
    codes[count + i] = bytes[i] >> 4;
  }
}

void decode_q8_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

void decode_q4_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  uint8_t codes[32];
  unpack_nibbles(block + 2, 16, codes);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(codes[i] - 8);
}

void decode_q4_1(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  uint8_t codes[32];
  unpack_nibbles(block + 4, 16, codes);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(codes[i]) + m;
}

void decode_mxfp4_block(const uint8_t* block, float* out) {
  const float scale = mxfp4_scale(block[0]);
  uint8_t codes[32];
  unpack_nibbles(block + 1, 16, codes);
  for (int i = 0; i < 32; ++i) out[i] = kMxfp4Values[codes[i]] * scale;
}

// Bytes 0 to 3 hold the low 6 bits of scales 0 to 3, bytes 4 to 7 those of mins 0 to 3; bytes 8 to
// 11 the low 4 bits of scales 4 to 7 (low nibble) and mins 4 to 7, whose upper 2 bits are the upper
// 2 of bytes 0 to 7.
struct ScaleAndMin {
  int scale;
  int min;
};
ScaleAndMin q4_k_scale(const uint8_t* bytes, int group) {
  if (group < 4) return {bytes[group] & 63, bytes[group + 4] & 63};
  return {(bytes[group + 4] & 15) | (bytes[group - 4] >> 6) << 4,
          (bytes[group + 4] >> 4) | (bytes[group] >> 6) << 4};
}

void decode_q4_k(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  const uint8_t *scales = block + 4, *codes = block + 16;
  uint8_t group_codes[64];
  for (int group = 0; group < 8; ++group) {
    if (group % 2 == 0) unpack_nibbles(codes + group * 16, 32, group_codes);
    const ScaleAndMin s = q4_k_scale(scales, group);
    const float scale = d * static_cast<float>(s.scale), min = m * static_cast<float>(s.min);
    const uint8_t* q = group_codes + group % 2 * 32;
    for (int i = 0; i < 32; ++i) out[group * 32 + i] = scale * static_cast<float>(q[i]) - min;
  }
}

// Halves of 128 elements: 64 bytes of low bits (byte i: elements i and i + 64), 32 bytes of high
// bits (byte i: elements i, i + 32, i + 64, i + 96, two bits each from the lowest up).
void decode_q6_k(const uint8_t* block, float* out) {
  const float d = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t *low = block + half * 64, *high = block + 128 + half * 32;
    const uint8_t* scales = block + 192 + half * 8;
    for (int i = 0; i < 128; ++i) {
      const int low_bits = i < 64 ? low[i] & 15 : low[i - 64] >> 4;
      const int high_bits = high[i % 32] >> (2 * (i / 32)) & 3;
      const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
      out[half * 128 + i] = scale * static_cast<float>((low_bits | high_bits << 4) - 32);
    }
  }
}

// Where a block has its fp16 scales.
struct HalfFields {
  int first;
  int count;
};
HalfFields half_fields(WireDType dtype) {
  switch (dtype) {
    case WireDType::kQ8_0:
    case WireDType::kQ4_0: return {0, 1};
    case WireDType::kQ4_1:
    case WireDType::kQ4_K: return {0, 2};
    case WireDType::kQ6_K: return {208, 1};
    default: CHECK(false, "{} has no fp16 scales", to_string(dtype));
  }
}

}  // namespace

bool has_finite_scales(WireDType dtype, std::span<const uint8_t> bytes) {
  const HalfFields fields = half_fields(dtype);
  const auto size = static_cast<size_t>(block_bytes(dtype));
  bool is_finite = true;
  for (size_t block = 0; block + size <= bytes.size(); block += size) {
    for (int i = 0; i < fields.count; ++i) {
      const uint8_t high = bytes[block + static_cast<size_t>(fields.first + 2 * i + 1)];
      is_finite &= (high & 0x7c) != 0x7c;
    }
  }
  return is_finite;
}

void decode_block(WireDType dtype, const uint8_t* block, float* out) {
  switch (dtype) {
    case WireDType::kQ8_0: return decode_q8_0(block, out);
    case WireDType::kQ4_0: return decode_q4_0(block, out);
    case WireDType::kQ4_1: return decode_q4_1(block, out);
    case WireDType::kQ4_K: return decode_q4_k(block, out);
    case WireDType::kQ6_K: return decode_q6_k(block, out);
    case WireDType::kMxfp4Block: return decode_mxfp4_block(block, out);
    default: CHECK(false, "{} is no block format", to_string(dtype));
  }
}

}  // namespace briar

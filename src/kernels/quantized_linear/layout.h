// How quantized_linear() wants GGUF's block-quantised weights packed. Host only; header only, so
// that weights/ can pack while it loads without linking the kernels.
//
// Weights go in panels of 16 output rows. A panel holds, block of columns after block of columns,
// what the 16 rows need for it: their scales, then their quantised values, so that one register
// takes the same column of all 16 rows and a product streams the panel once, front to back. Values
// keep the size they have in the file (6-bit scales become bytes); the rows of the last panel
// beyond out_features are zero.
//
// One block of a panel, in bytes, R = 16 rows, r the row:
//
//   Q8_0   d fp16 [R]                                    then 1 group of int8 [32 columns][R]
//   Q4_0   d fp16 [R]                                    then 1 group of nibbles
//   Q4_1   d fp16 [R], m fp16 [R]                        then 1 group of nibbles
//   Q4_K   d fp16 [R], dmin fp16 [R], scales uint8 [8][R], mins uint8 [8][R], then 8 groups of
//          nibbles
//   Q6_K   d fp16 [R], scales int8 [16][R]               then 8 groups of nibbles and high bits
//
// A group is 32 columns. Nibbles: uint32 [4][R], columns 8 j to 8 j + 7 in word j; high bits (the
// upper two of six): uint32 [2][R], columns 16 j to 16 j + 15 in word j. Inside a word the even
// columns fill the low half, lowest bits first, and the odd columns the high half: a shift leaves a
// pair of neighbouring columns in the two halves, as products of bf16 pairs take them.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "kernels/quantized_linear/block_format.h"

namespace briar {

// A quantised weight matrix. in_features is a whole number of blocks.
struct QuantizedShape {
  BlockFormat format;
  int64_t out_features;
  int64_t in_features;
};

inline constexpr int64_t kPanelRows = 16;
inline constexpr int64_t kGroupColumns = 32;

// Where things lie inside one packed block of a panel, in bytes.
struct PackedBlock {
  int64_t header_bytes;  // scales and mins, before the groups
  int64_t group_bytes;
  int64_t num_groups;
  constexpr int64_t bytes() const { return header_bytes + group_bytes * num_groups; }
};

constexpr PackedBlock packed_block(BlockFormat format) {
  switch (format) {
    case BlockFormat::kQ8_0: return {2 * kPanelRows, 32 * kPanelRows, 1};
    case BlockFormat::kQ4_0: return {2 * kPanelRows, 16 * kPanelRows, 1};
    case BlockFormat::kQ4_1: return {4 * kPanelRows, 16 * kPanelRows, 1};
    case BlockFormat::kQ4_K: return {20 * kPanelRows, 16 * kPanelRows, 8};
    case BlockFormat::kQ6_K: return {18 * kPanelRows, 24 * kPanelRows, 8};
  }
  return {};
}

// Bytes of one row of blocks as a GGUF stores it.
inline int64_t source_row_bytes(BlockFormat format, int64_t in_features) {
  CHECK_EQ(in_features % block_size(format), 0, "{} rows are whole blocks", to_string(format));
  return in_features / block_size(format) * block_bytes(format);
}

inline int64_t panel_bytes(BlockFormat format, int64_t in_features) {
  CHECK_EQ(in_features % block_size(format), 0, "{} rows are whole blocks", to_string(format));
  return in_features / block_size(format) * packed_block(format).bytes();
}

// Bytes of the packed matrix: those of the source rounded up to whole panels, 1.03 times that for
// Q4_K.
inline int64_t packed_bytes(const QuantizedShape& s) {
  return (s.out_features + kPanelRows - 1) / kPanelRows * panel_bytes(s.format, s.in_features);
}

// An IEEE half as fp32, exactly (NaN stays NaN).
inline float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, exponent = half >> 10 & 31u;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t bits = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  float value;
  const uint32_t word = sign | bits | fraction << 13;
  std::memcpy(&value, &word, 4);
  return value;
}

namespace quantized_layout {

// One block of one row, taken apart: value = d * scale[column / 32 or 16] * (q - offset) - or +
// min.
struct UnpackedBlock {
  uint16_t d = 0, min = 0;   // fp16; min: Q4_1's m, Q4_K's dmin
  uint8_t scales[16] = {};   // of K-quants; Q6_K's are signed
  uint8_t mins[8] = {};      // Q4_K
  uint8_t values[256] = {};  // unsigned as stored (Q6_K: 0 to 63); Q8_0: two's complement
};

inline void unpack_k_scales(const uint8_t* packed, UnpackedBlock& out) {
  for (int i = 0; i < 4; ++i) {
    out.scales[i] = packed[i] & 63;
    out.mins[i] = packed[i + 4] & 63;
    const int low_scale = packed[i + 8] & 15, low_min = packed[i + 8] >> 4;
    out.scales[i + 4] = static_cast<uint8_t>(low_scale | packed[i] >> 6 << 4);
    out.mins[i + 4] = static_cast<uint8_t>(low_min | packed[i + 4] >> 6 << 4);
  }
}

// `bytes` hold 2 n nibbles: n low ones, then n high ones.
inline void unpack_nibbles(const uint8_t* bytes, int n, uint8_t* out) {
  for (int i = 0; i < n; ++i) {
    out[i] = bytes[i] & 15;
    out[n + i] = bytes[i] >> 4;
  }
}

// Half of a Q6_K block: 128 values whose low nibbles are in 64 bytes and high bits in 32.
inline void unpack_six_bits(const uint8_t* low, const uint8_t* high, uint8_t* out) {
  for (int i = 0; i < 64; ++i) {
    const int shift = i < 32 ? 0 : 2;
    const uint8_t bits = high[i % 32];
    out[i] = static_cast<uint8_t>((low[i] & 15) | (bits >> shift & 3) << 4);
    out[i + 64] = static_cast<uint8_t>(low[i] >> 4 | (bits >> (shift + 4) & 3) << 4);
  }
}

inline void unpack_block(BlockFormat format, const uint8_t* source, UnpackedBlock& out) {
  switch (format) {
    case BlockFormat::kQ8_0:
      std::memcpy(&out.d, source, 2);
      std::memcpy(out.values, source + 2, 32);
      return;
    case BlockFormat::kQ4_0:
      std::memcpy(&out.d, source, 2);
      return unpack_nibbles(source + 2, 16, out.values);
    case BlockFormat::kQ4_1:
      std::memcpy(&out.d, source, 2);
      std::memcpy(&out.min, source + 2, 2);
      return unpack_nibbles(source + 4, 16, out.values);
    case BlockFormat::kQ4_K:
      std::memcpy(&out.d, source, 2);
      std::memcpy(&out.min, source + 2, 2);
      unpack_k_scales(source + 4, out);
      for (int i = 0; i < 4; ++i) unpack_nibbles(source + 16 + 32 * i, 32, out.values + 64 * i);
      return;
    case BlockFormat::kQ6_K:
      for (int half = 0; half < 2; ++half) {
        unpack_six_bits(source + 64 * half, source + 128 + 32 * half, out.values + 128 * half);
      }
      std::memcpy(out.scales, source + 192, 16);
      std::memcpy(&out.d, source + 208, 2);
      return;
  }
}

// `bits` (2 or 4) of each of the group's 32 values from bit `from` on, into the words of row r.
inline void pack_words(const uint8_t* values, int from, int bits, int64_t r, uint8_t* words) {
  const int columns = 32 / bits;
  for (int j = 0; j < 32 / columns; ++j) {
    uint32_t word = 0;
    for (int i = 0; i < columns; ++i) {
      const uint32_t value = values[columns * j + i] >> from & ((1u << bits) - 1u);
      word |= value << ((i % 2) * 16 + i / 2 * bits);
    }
    std::memcpy(words + (j * kPanelRows + r) * 4, &word, 4);
  }
}

inline void pack_header(BlockFormat format, const UnpackedBlock& block, int64_t r, uint8_t* to) {
  std::memcpy(to + 2 * r, &block.d, 2);
  if (format == BlockFormat::kQ4_1 || format == BlockFormat::kQ4_K) {
    std::memcpy(to + 2 * (kPanelRows + r), &block.min, 2);
  }
  if (format == BlockFormat::kQ4_K) {
    for (int i = 0; i < 8; ++i) to[(4 + i) * kPanelRows + r] = block.scales[i];
    for (int i = 0; i < 8; ++i) to[(12 + i) * kPanelRows + r] = block.mins[i];
  }
  if (format == BlockFormat::kQ6_K) {
    for (int i = 0; i < 16; ++i) to[(2 + i) * kPanelRows + r] = block.scales[i];
  }
}

inline void pack_block(BlockFormat format, const UnpackedBlock& block, int64_t r, uint8_t* to) {
  const PackedBlock layout = packed_block(format);
  pack_header(format, block, r, to);
  for (int64_t g = 0; g < layout.num_groups; ++g) {
    const uint8_t* values = block.values + kGroupColumns * g;
    uint8_t* group = to + layout.header_bytes + layout.group_bytes * g;
    if (format == BlockFormat::kQ8_0) {
      for (int64_t i = 0; i < kGroupColumns; ++i) group[i * kPanelRows + r] = values[i];
      continue;
    }
    pack_words(values, 0, 4, r, group);
    if (format == BlockFormat::kQ6_K) pack_words(values, 4, 2, r, group + 16 * kPanelRows);
  }
}

}  // namespace quantized_layout

// Packs rows [row_begin, row_end) into `packed` (packed_bytes(shape) of them, any alignment; 64 is
// best). `source` is where row row_begin stands in the file, row_end - row_begin rows one after
// another. Rows share no byte: any threads may pack any ranges at once, and rows in another order
// are packed one by one. The range that ends at out_features also zeroes the rows beyond.
inline void pack(const QuantizedShape& shape, const uint8_t* source, int64_t row_begin,
                 int64_t row_end, uint8_t* packed) {
  CHECK(0 <= row_begin && row_begin <= row_end && row_end <= shape.out_features,
        "pack: rows {} to {} of {}", row_begin, row_end, shape.out_features);
  const int64_t stride = panel_bytes(shape.format, shape.in_features);
  const int64_t num_blocks = shape.in_features / block_size(shape.format);
  const int64_t step = packed_block(shape.format).bytes();
  const int64_t end =
      row_end < shape.out_features ? row_end : (row_end + kPanelRows - 1) / kPanelRows * kPanelRows;
  for (int64_t row = row_begin; row < end; ++row) {
    uint8_t* to = packed + row / kPanelRows * stride;
    for (int64_t b = 0; b < num_blocks; ++b) {
      quantized_layout::UnpackedBlock block;
      if (row < row_end) {
        quantized_layout::unpack_block(shape.format, source, block);
        source += block_bytes(shape.format);
      }
      quantized_layout::pack_block(shape.format, block, row % kPanelRows, to + b * step);
    }
  }
}

namespace quantized_layout {

inline float half_at(const uint8_t* p, int64_t i) {
  uint16_t half;
  std::memcpy(&half, p + 2 * i, 2);
  return half_to_float(half);
}

// What pack_words() put there for column c.
inline int word_at(const uint8_t* words, int bits, int64_t r, int64_t c) {
  const int64_t columns = 32 / bits, i = c % columns;
  uint32_t word;
  std::memcpy(&word, words + (c / columns * kPanelRows + r) * 4, 4);
  return static_cast<int>(word >> (i % 2 * 16 + i / 2 * bits) & ((1u << bits) - 1u));
}

}  // namespace quantized_layout

// The values of group g of a packed block (packed_block(format).bytes() at `block`), row r of the
// panel: those of the file, rounded once to fp32.
inline void unpack_group(BlockFormat format, const uint8_t* block, int64_t g, int64_t r,
                         float (&out)[kGroupColumns]) {
  using quantized_layout::half_at;
  using quantized_layout::word_at;
  const PackedBlock layout = packed_block(format);
  const uint8_t* group = block + layout.header_bytes + layout.group_bytes * g;
  const float d = half_at(block, r), min = half_at(block, kPanelRows + r);
  for (int64_t c = 0; c < kGroupColumns; ++c) {
    switch (format) {
      case BlockFormat::kQ8_0:
        out[c] = d * static_cast<float>(static_cast<int8_t>(group[c * kPanelRows + r]));
        break;
      case BlockFormat::kQ4_0: out[c] = d * static_cast<float>(word_at(group, 4, r, c) - 8); break;
      case BlockFormat::kQ4_1:
        out[c] = d * static_cast<float>(word_at(group, 4, r, c)) + min;
        break;
      case BlockFormat::kQ4_K: {
        const int scale = block[(4 + g) * kPanelRows + r], low = block[(12 + g) * kPanelRows + r];
        out[c] =
            d * static_cast<float>(scale * word_at(group, 4, r, c)) - min * static_cast<float>(low);
        break;
      }
      case BlockFormat::kQ6_K: {
        const int64_t sub = 2 * g + c / 16;
        const int scale = static_cast<int8_t>(block[(2 + sub) * kPanelRows + r]);
        const int high = word_at(group + 16 * kPanelRows, 2, r, c);
        const int q = (word_at(group, 4, r, c) | high << 4) - 32;
        out[c] = d * static_cast<float>(scale * q);
        break;
      }
    }
  }
}

}  // namespace briar

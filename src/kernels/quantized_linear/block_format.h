// The block-quantised formats of GGUF that the kernels read.
#pragma once

#include <cstdint>

namespace briar {

// Each block of 32 (K: 256) neighbouring weights of a row shares its scales; q is the stored
// integer, d, m and dmin are fp16:
//   Q8_0  d q, q int8           Q4_0  d (q - 8), q 4 bits      Q4_1  d q + m, q 4 bits
//   Q4_K  d scale q - dmin min, q 4 bits, a 6-bit scale and min for each 32
//   Q6_K  d scale (q - 32), q 6 bits, an int8 scale for each 16
enum class BlockFormat : uint8_t { kQ8_0, kQ4_0, kQ4_1, kQ4_K, kQ6_K };

constexpr const char* to_string(BlockFormat format) {
  switch (format) {
    case BlockFormat::kQ8_0: return "Q8_0";
    case BlockFormat::kQ4_0: return "Q4_0";
    case BlockFormat::kQ4_1: return "Q4_1";
    case BlockFormat::kQ4_K: return "Q4_K";
    case BlockFormat::kQ6_K: return "Q6_K";
  }
  return "?";
}

// Weights a block.
constexpr int64_t block_size(BlockFormat format) {
  return format == BlockFormat::kQ4_K || format == BlockFormat::kQ6_K ? 256 : 32;
}

// Bytes of a block in the file.
constexpr int64_t block_bytes(BlockFormat format) {
  switch (format) {
    case BlockFormat::kQ8_0: return 34;
    case BlockFormat::kQ4_0: return 18;
    case BlockFormat::kQ4_1: return 20;
    case BlockFormat::kQ4_K: return 144;
    case BlockFormat::kQ6_K: return 210;
  }
  return 0;
}

}  // namespace briar

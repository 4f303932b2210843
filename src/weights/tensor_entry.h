// One tensor of a weight file, whichever format the file has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace briar {

// Element types as safetensors (the first sixteen) and GGUF spell them. The types from kQ8_0 on
// are block formats: so many elements of a row share scales (gguf_blocks.h).
enum class WireDType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ4_K,
  kQ6_K,
  kMxfp4Block
};

// "BF16"
const char* to_string(WireDType dtype);
// Elements that are stored together: 1 but for the block formats.
int64_t block_elements(WireDType dtype);
// Bytes of one such block.
int64_t block_bytes(WireDType dtype);
inline bool is_block_format(WireDType dtype) { return block_elements(dtype) > 1; }

// Bytes of a tensor of this shape (row-major; a block lies within a row). Absent where they exceed
// 2^63 or a row is no whole number of blocks. A shape with a zero takes none.
std::optional<int64_t> tensor_bytes(WireDType dtype, std::span<const int64_t> shape);

// `bytes` has exactly the size that dtype and shape ask for; it need not be aligned to the element.
struct TensorEntry {
  std::string name;
  WireDType dtype = WireDType::kU8;
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;
  std::string file;
  // Above zero: the rows belong to so many heads, and within each head rows 2i and 2i + 1 are what
  // Hugging Face's layout has as rows i and i + head_dim / 2 (GGUF's conversion of Llama's q and
  // k).
  int64_t num_interleaved_heads = 0;

  int64_t num_elements() const;
};

}  // namespace briar

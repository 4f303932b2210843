// The safetensors file format: eight bytes of header length (little endian), a JSON header that
// maps tensor names to dtype, shape and byte range, then the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace briar {

// Element types as the format spells them.
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
  kU64
};

// "BF16"
const char* to_string(WireDType dtype);
// Bytes of one element.
int64_t element_bytes(WireDType dtype);

// One tensor of a file. `bytes` has exactly the size that dtype and shape ask for; it need not be
// aligned to the element.
struct TensorEntry {
  std::string name;
  WireDType dtype = WireDType::kU8;
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;
  std::string file;

  int64_t num_elements() const;
};

// Tensors of more dimensions than this are refused.
inline constexpr size_t kMaxWireRank = 8;
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Reads a whole file's bytes. The entries point into `bytes`, which must outlive them; `file` names
// the file in errors and entries. Nothing of the file is trusted: every range is checked against
// dtype, shape and size of the file; ranges must neither overlap nor leave holes; names must
// differ. Stricter than the reference reader in one respect: unknown fields of a tensor are
// refused.
Result<std::vector<TensorEntry>> parse_safetensors(std::span<const uint8_t> bytes,
                                                   const std::string& file);

}  // namespace briar

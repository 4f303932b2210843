// The safetensors file format: eight bytes of header length (little endian), a JSON header that
// maps tensor names to dtype, shape and byte range, then the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/tensor_entry.h"

namespace briar {

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

// Conversion of the numbers of a file to the types that the kernels compute with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "device/dtype.h"
#include "weights/safetensors.h"

namespace briar {

// True for BF16, F16, F32 and the block formats.
bool is_dense(WireDType dtype);

// One element of a dense type, at an index of `bytes`.
float dense_element(WireDType dtype, std::span<const uint8_t> bytes, int64_t index);

// Converts `bytes` (of a dense type, whole blocks, any alignment) to `to_dtype` (kFp32 or kBf16) at
// `to`. Returns false if a result is NaN or infinite; an F32 beyond the range of bf16 counts as
// infinite.
bool convert_dense(WireDType dtype, std::span<const uint8_t> bytes, DType to_dtype, void* to);

// As convert_dense (no block formats), for rows [row_begin, row_end) of the transpose [num_columns,
// num_rows] -> `to` [num_rows, num_columns].
struct TransposeArgs {
  WireDType dtype;
  std::span<const uint8_t> bytes;  // [num_columns, num_rows]
  int64_t num_rows;
  int64_t num_columns;
  DType to_dtype;
  void* to;  // [num_rows, num_columns]
};
bool convert_transposed(const TransposeArgs& args, int64_t row_begin, int64_t row_end);

// Index of the first element that convert_dense would refuse.
std::optional<int64_t> find_not_finite(WireDType dtype, std::span<const uint8_t> bytes,
                                       DType to_dtype);

}  // namespace briar

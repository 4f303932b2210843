// A file's bytes through the safetensors reader.
#include <cstring>

#include "fuzz/require.h"
#include "weights/safetensors.h"

// The sanitizer sees a read only if it happens.
static volatile uint8_t touched;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = briar::parse_safetensors({data, size}, "f");
  if (!entries) {
    briar::require_error_line(entries.error().message);
    return 0;
  }
  size_t end = 0;
  for (const briar::TensorEntry& entry : *entries) {
    briar::require(entry.bytes.size() ==
                       static_cast<size_t>(briar::tensor_bytes(entry.dtype, entry.shape).value()),
                   "a tensor has the bytes that its shape asks for");
    end += entry.bytes.size();
    for (const uint8_t byte : entry.bytes) touched = byte;
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data, sizeof(header_bytes));
  briar::require(end == size - sizeof(header_bytes) - header_bytes, "tensors tile the data");
  return 0;
}

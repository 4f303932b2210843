#include "weights/tensor_entry.h"

#include <algorithm>
#include <array>

namespace briar {
namespace {

struct WireType {
  const char* name;
  int64_t bytes;
  int64_t elements;
};

// Indexed by WireDType.
constexpr std::array<WireType, 22> kWireTypes = {
    {{"BOOL", 1, 1},     {"U8", 1, 1},     {"I8", 1, 1},     {"F8_E5M2", 1, 1}, {"F8_E4M3", 1, 1},
     {"F8_E8M0", 1, 1},  {"I16", 2, 1},    {"U16", 2, 1},    {"F16", 2, 1},     {"BF16", 2, 1},
     {"I32", 4, 1},      {"U32", 4, 1},    {"F32", 4, 1},    {"F64", 8, 1},     {"I64", 8, 1},
     {"U64", 8, 1},      {"Q8_0", 34, 32}, {"Q4_0", 18, 32}, {"Q4_1", 20, 32},  {"Q4_K", 144, 256},
     {"Q6_K", 210, 256}, {"MXFP4", 17, 32}}};

const WireType& type_of(WireDType dtype) { return kWireTypes[static_cast<size_t>(dtype)]; }

}  // namespace

const char* to_string(WireDType dtype) { return type_of(dtype).name; }
int64_t block_elements(WireDType dtype) { return type_of(dtype).elements; }
int64_t block_bytes(WireDType dtype) { return type_of(dtype).bytes; }

std::optional<int64_t> tensor_bytes(WireDType dtype, std::span<const int64_t> shape) {
  const WireType& type = type_of(dtype);
  if (type.elements > 1 && (shape.empty() || shape.back() % type.elements != 0)) {
    return std::nullopt;
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t size = type.bytes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t count = i + 1 == shape.size() ? shape[i] / type.elements : shape[i];
    if (__builtin_mul_overflow(size, count, &size)) return std::nullopt;
  }
  return size;
}

int64_t TensorEntry::num_elements() const {
  return static_cast<int64_t>(bytes.size()) / block_bytes(dtype) * block_elements(dtype);
}

}  // namespace briar

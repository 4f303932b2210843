#include "weights/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "weights/gguf_blocks.h"

namespace briar {
namespace {

// Readers of one element from its bits. The file's bytes have no alignment, hence the memcpy.
struct FromBf16 {
  using Bits = uint16_t;
  static uint32_t to_fp32_bits(Bits bits) { return uint32_t{bits} << 16; }
};
struct FromF16 {
  using Bits = uint16_t;
  static uint32_t to_fp32_bits(Bits bits) { return std::bit_cast<uint32_t>(half_to_float(bits)); }
};
struct FromF32 {
  using Bits = uint32_t;
  static uint32_t to_fp32_bits(Bits bits) { return bits; }
};

template <class From>
uint32_t read_fp32_bits(const uint8_t* bytes, int64_t index) {
  typename From::Bits bits;
  std::memcpy(&bits, bytes + index * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
  return From::to_fp32_bits(bits);
}

// Results as bits, so that the loops below vectorise. All ones in the exponent: not finite.
struct ToFp32 {
  using Bits = uint32_t;
  static constexpr Bits kExponent = 0x7f800000u;
  static Bits from(uint32_t fp32_bits) { return fp32_bits; }
};
struct ToBf16 {
  using Bits = uint16_t;
  static constexpr Bits kExponent = 0x7f80u;
  // A NaN may become an infinity here; both are refused.
  static Bits from(uint32_t fp32_bits) {
    const uint32_t rounded = fp32_bits + 0x7fffu + ((fp32_bits >> 16) & 1u);
    const bool is_finite = (fp32_bits & 0x7f800000u) != 0x7f800000u;
    return static_cast<Bits>((is_finite ? rounded : fp32_bits & 0xff800000u) >> 16);
  }
};

template <class From, class To>
bool convert(const uint8_t* from, int64_t count, void* to) {
  auto* out = static_cast<typename To::Bits*>(to);
  uint32_t num_bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    const typename To::Bits bits = To::from(read_fp32_bits<From>(from, i));
    out[i] = bits;
    num_bad |= (bits & To::kExponent) == To::kExponent ? 1u : 0u;
  }
  return num_bad == 0;
}

template <class From, class To>
bool transpose(const TransposeArgs& a, int64_t row_begin, int64_t row_end) {
  auto* out = static_cast<typename To::Bits*>(a.to);
  uint32_t num_bad = 0;
  // Tiles of 64 columns keep the written lines of all rows of the range in the cache.
  constexpr int64_t kTile = 64;
  for (int64_t tile = 0; tile < a.num_columns; tile += kTile) {
    const int64_t tile_end = std::min(tile + kTile, a.num_columns);
    for (int64_t row = row_begin; row < row_end; ++row) {
      for (int64_t column = tile; column < tile_end; ++column) {
        const typename To::Bits bits =
            To::from(read_fp32_bits<From>(a.bytes.data(), column * a.num_rows + row));
        out[row * a.num_columns + column] = bits;
        num_bad |= (bits & To::kExponent) == To::kExponent ? 1u : 0u;
      }
    }
  }
  return num_bad == 0;
}

// Block by block through fp32.
template <class To>
bool convert_blocks(WireDType dtype, std::span<const uint8_t> bytes, void* to) {
  const int64_t size = block_bytes(dtype), elements = block_elements(dtype);
  auto* out = static_cast<typename To::Bits*>(to);
  bool is_finite = true;
  for (const uint8_t* block = bytes.data(); block < bytes.data() + bytes.size(); block += size) {
    float values[kMaxBlockElements];
    decode_block(dtype, block, values);
    const auto* from = reinterpret_cast<const uint8_t*>(values);  // bytes may alias anything
    is_finite &= convert<FromF32, To>(from, elements, out);
    out += elements;
  }
  return is_finite;
}

// Calls body.template operator()<From, To>() for the types of the two arguments.
template <class To, class Body>
auto with_from(WireDType from, const Body& body) {
  CHECK(is_dense(from), "{} is not a dense element type", to_string(from));
  if (from == WireDType::kBf16) return body.template operator()<FromBf16, To>();
  if (from == WireDType::kF16) return body.template operator()<FromF16, To>();
  return body.template operator()<FromF32, To>();
}
template <class Body>
auto with_types(WireDType from, DType to, const Body& body) {
  CHECK(to == DType::kFp32 || to == DType::kBf16, "weights convert to fp32 or bf16, not to {}",
        to_string(to));
  return to == DType::kFp32 ? with_from<ToFp32>(from, body) : with_from<ToBf16>(from, body);
}

}  // namespace

bool is_dense(WireDType dtype) {
  return dtype == WireDType::kBf16 || dtype == WireDType::kF16 || dtype == WireDType::kF32 ||
         is_block_format(dtype);
}

float dense_element(WireDType dtype, std::span<const uint8_t> bytes, int64_t index) {
  const int64_t size = block_bytes(dtype), elements = block_elements(dtype);
  const auto num_blocks = static_cast<int64_t>(bytes.size()) / size;
  CHECK(index >= 0 && index < num_blocks * elements, "element {} of {} bytes", index, bytes.size());
  const uint8_t* block = bytes.data() + index / elements * size;
  float values[kMaxBlockElements];
  convert_dense(dtype, {block, static_cast<size_t>(size)}, DType::kFp32, values);
  return values[index % elements];
}

bool convert_dense(WireDType dtype, std::span<const uint8_t> bytes, DType to_dtype, void* to) {
  if (is_block_format(dtype)) {
    return to_dtype == DType::kFp32 ? convert_blocks<ToFp32>(dtype, bytes, to)
                                    : convert_blocks<ToBf16>(dtype, bytes, to);
  }
  const int64_t count = static_cast<int64_t>(bytes.size()) / block_bytes(dtype);
  return with_types(dtype, to_dtype, [&]<class From, class To>() {
    return convert<From, To>(bytes.data(), count, to);
  });
}

bool convert_transposed(const TransposeArgs& args, int64_t row_begin, int64_t row_end) {
  CHECK_EQ(static_cast<int64_t>(args.bytes.size()),
           args.num_rows * args.num_columns * block_bytes(args.dtype), "bytes of {} x {} {}",
           args.num_columns, args.num_rows, to_string(args.dtype));
  CHECK(0 <= row_begin && row_begin <= row_end && row_end <= args.num_rows, "rows [{}, {}) of {}",
        row_begin, row_end, args.num_rows);
  return with_types(args.dtype, args.to_dtype, [&]<class From, class To>() {
    return transpose<From, To>(args, row_begin, row_end);
  });
}

std::optional<int64_t> find_not_finite(WireDType dtype, std::span<const uint8_t> bytes,
                                       DType to_dtype) {
  const int64_t count =
      static_cast<int64_t>(bytes.size()) / block_bytes(dtype) * block_elements(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const float element = dense_element(dtype, bytes, i);
    const auto* from = reinterpret_cast<const uint8_t*>(&element);
    uint32_t converted = 0;
    if (!convert_dense(WireDType::kF32, {from, sizeof(element)}, to_dtype, &converted)) return i;
  }
  return std::nullopt;
}

}  // namespace briar

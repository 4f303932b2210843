#include "weights/gguf_blocks.h"

#include <cmath>
#include <cstring>

#include "weights/convert.h"
#include "weights/test_util.h"

namespace briar {
namespace {

constexpr uint16_t kHalfOne = 0x3c00, kHalfTwo = 0x4000, kHalfMinusHalf = 0xb800;

class Block {
 public:
  Block& half(uint16_t bits) { return byte(bits & 255).byte(bits >> 8); }
  Block& byte(int value) {
    bytes_.push_back(static_cast<uint8_t>(value));
    return *this;
  }
  template <class Fn>
  Block& bytes(int count, const Fn& fn) {
    for (int i = 0; i < count; ++i) byte(fn(i));
    return *this;
  }
  std::vector<float> decode(WireDType dtype) const {
    EXPECT_EQ(static_cast<int64_t>(bytes_.size()), block_bytes(dtype));
    std::vector<float> out(static_cast<size_t>(block_elements(dtype)));
    decode_block(dtype, bytes_.data(), out.data());
    return out;
  }

 private:
  std::vector<uint8_t> bytes_;
};

TEST(GgufBlocks, Q8_0) {
  const auto got =
      Block().half(kHalfTwo).bytes(32, [](int i) { return i - 16; }).decode(WireDType::kQ8_0);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], 2.f * (i - 16)) << i;
}

// Low nibbles are elements 0 to 15, high ones 16 to 31: here code(i) = i % 16 and 15 - i % 16.
int two_codes(int i) { return i | (15 - i) << 4; }

TEST(GgufBlocks, Q4_0AndQ4_1) {
  const auto q4_0 = Block().half(kHalfMinusHalf).bytes(16, two_codes).decode(WireDType::kQ4_0);
  const auto q4_1 =
      Block().half(kHalfTwo).half(kHalfMinusHalf).bytes(16, two_codes).decode(WireDType::kQ4_1);
  for (int i = 0; i < 32; ++i) {
    const int code = i < 16 ? i : 31 - i;
    EXPECT_EQ(q4_0[static_cast<size_t>(i)], -0.5f * static_cast<float>(code - 8)) << i;
    EXPECT_EQ(q4_1[static_cast<size_t>(i)], 2.f * static_cast<float>(code) - 0.5f) << i;
  }
}

TEST(GgufBlocks, Mxfp4) {
  const auto got = Block().byte(129).bytes(16, two_codes).decode(WireDType::kMxfp4Block);
  const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int i = 0; i < 32; ++i) {
    const int code = i < 16 ? i : 31 - i;
    const float magnitude = 4 * values[code & 7];
    EXPECT_EQ(got[static_cast<size_t>(i)], code < 8 ? magnitude : -magnitude) << i;
  }
}

// Scales 1, 5, ..., 29 and 33, 37, 41, 45 for groups 4 to 7 (which need the upper bits); mins 2 g.
TEST(GgufBlocks, Q4_K) {
  const int scales[8] = {1, 5, 9, 13, 33, 37, 41, 45}, mins[8] = {0, 2, 4, 6, 40, 42, 44, 46};
  const auto packed = [&](int i) {
    if (i < 4) return scales[i] | (scales[i + 4] >> 4) << 6;
    if (i < 8) return mins[i - 4] | (mins[i] >> 4) << 6;
    return (scales[i - 4] & 15) | (mins[i - 4] & 15) << 4;
  };
  // Byte j of pair p of groups: element j of group 2 p is j % 16, that of group 2 p + 1 is p.
  const auto codes = [](int i) { return i % 32 % 16 | (i / 32) << 4; };
  const auto got = Block()
                       .half(kHalfOne)
                       .half(kHalfTwo)
                       .bytes(12, packed)
                       .bytes(128, codes)
                       .decode(WireDType::kQ4_K);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32, code = group % 2 == 0 ? i % 32 % 16 : group / 2;
    EXPECT_EQ(got[static_cast<size_t>(i)],
              static_cast<float>(scales[group] * code - 2 * mins[group]))
        << i;
  }
}

TEST(GgufBlocks, Q6_K) {
  const auto code = [](int i) { return (i * 7 + i / 64) % 64; };
  const auto low = [&](int i) {
    const int at = i / 64 * 128 + i % 64;
    return (code(at) & 15) | (code(at + 64) & 15) << 4;
  };
  const auto high = [&](int i) {
    const int at = i / 32 * 128 + i % 32;
    int bits = 0;
    for (int part = 0; part < 4; ++part) bits |= (code(at + 32 * part) >> 4) << (2 * part);
    return bits;
  };
  const auto scale = [](int i) { return 3 * i - 20; };
  const auto got = Block().bytes(128, low).bytes(64, high).bytes(16, scale).half(kHalfTwo).decode(
      WireDType::kQ6_K);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)], static_cast<float>(2 * scale(i / 16) * (code(i) - 32)))
        << i;
  }
}

struct Reference {
  WireDType dtype;
  uint64_t hash;  // of the numbers that PyPI's gguf 0.19 decodes the same bytes to
  std::vector<size_t> halves;
};

uint64_t fnv(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// 64 blocks of pseudo-random bytes, through the conversion that the loader uses. The fp16 fields
// are kept finite; -0 counts as 0.
TEST(GgufBlocks, SameBitsAsTheReferenceDecoder) {
  const std::vector<Reference> cases = {{WireDType::kQ8_0, 0x9e09e49b39ad88c1, {0}},
                                        {WireDType::kQ4_0, 0xb2a69eb547c79183, {0}},
                                        {WireDType::kQ4_1, 0x67bd5a0dd49219f6, {0, 2}},
                                        {WireDType::kQ4_K, 0xc1d61704f4e0b88d, {0, 2}},
                                        {WireDType::kQ6_K, 0x3d3e400ee65613e6, {208}},
                                        {WireDType::kMxfp4Block, 0x2f1b86b62bc1ea22, {}}};
  for (const Reference& c : cases) {
    SCOPED_TRACE(to_string(c.dtype));
    const auto size = static_cast<size_t>(block_bytes(c.dtype));
    std::vector<uint8_t> bytes(64 * size);
    uint64_t state = 7;
    for (uint8_t& byte : bytes) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<uint8_t>(state >> 56);
    }
    for (size_t block = 0; block < bytes.size(); block += size) {
      for (const size_t half : c.halves) bytes[block + half + 1] &= 0xbf;
      if (c.dtype == WireDType::kMxfp4Block) {
        bytes[block] = static_cast<uint8_t>(100 + bytes[block] % 50);
      }
    }
    std::vector<float> values(64 * static_cast<size_t>(block_elements(c.dtype)));
    ASSERT_TRUE(convert_dense(c.dtype, bytes, DType::kFp32, values.data()));
    for (float& value : values) value += 0.f;
    EXPECT_EQ(fnv({reinterpret_cast<const uint8_t*>(values.data()), 4 * values.size()}), c.hash);
    std::vector<Bf16> rounded(values.size());
    ASSERT_TRUE(convert_dense(c.dtype, bytes, DType::kBf16, rounded.data()));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(to_float(rounded[i]), to_float(to_bf16(values[i]))) << i;
    }
  }
}

TEST(GgufBlocks, NotFiniteIsFound) {
  std::vector<uint8_t> bytes(3 * 34, 1);
  bytes[34] = 0;
  bytes[35] = 0x7c;  // the second block's scale is infinite
  std::vector<float> values(96);
  EXPECT_FALSE(convert_dense(WireDType::kQ8_0, bytes, DType::kFp32, values.data()));
  EXPECT_EQ(find_not_finite(WireDType::kQ8_0, bytes, DType::kFp32), 32);
}

}  // namespace
}  // namespace briar

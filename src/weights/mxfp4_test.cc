#include "weights/mxfp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace briar {
namespace {

// E2M1 from its definition, in double: sign, two exponent bits of bias 1, one mantissa bit.
double e2m1_ref(unsigned code) {
  const int exponent = static_cast<int>(code >> 1) & 3;
  const double mantissa = code & 1;
  const double magnitude =
      exponent == 0 ? mantissa * 0.5 : std::ldexp(1 + mantissa / 2, exponent - 1);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

TEST(Mxfp4, ValuesAreThoseOfTheSpecification) {
  const double expected[] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6};
  for (unsigned code = 0; code < 16; ++code) {
    EXPECT_EQ(e2m1_ref(code), expected[code]);
    EXPECT_EQ(kMxfp4Values[code], static_cast<float>(expected[code]));
    EXPECT_EQ(std::signbit(kMxfp4Values[code]), code >= 8);
  }
}

// All 256 bytes under all 255 scales, in both forms.
TEST(Mxfp4, DecodesEveryByteUnderEveryScale) {
  std::vector<uint8_t> values(256);
  for (size_t i = 0; i < 256; ++i) values[i] = static_cast<uint8_t>(i);
  for (int scale = 0; scale < kMxfp4NanScale; ++scale) {
    const std::vector<uint8_t> scales(16, static_cast<uint8_t>(scale));
    std::vector<float> fp32(512, NAN);
    std::vector<Bf16> bf16(512, Bf16{0x7fc0});
    decode_mxfp4(values, scales, fp32);
    decode_mxfp4(values, scales, bf16);
    for (unsigned byte = 0; byte < 256; ++byte) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned code = half == 0 ? byte % 16 : byte / 16;
        const double exact = std::ldexp(e2m1_ref(code), scale - 127);
        const float expected = static_cast<float>(exact);  // exact, or infinite
        const float got = fp32[byte * 2 + half];
        ASSERT_EQ(got, expected) << "byte " << byte << " half " << half << " scale " << scale;
        ASSERT_EQ(std::signbit(got), code >= 8);
        ASSERT_EQ(to_float(bf16[byte * 2 + half]), expected) << "scale " << scale;
      }
    }
  }
}

TEST(Mxfp4, BlocksTakeTheirOwnScales) {
  const std::vector<uint8_t> values(32, 0x12);  // 1.0 first, then 0.5
  const std::vector<uint8_t> scales = {127, 129};
  std::vector<float> out(64);
  decode_mxfp4(values, scales, out);
  EXPECT_EQ(out[30], 1.f);
  EXPECT_EQ(out[31], 0.5f);
  EXPECT_EQ(out[32], 4.f);
  EXPECT_EQ(out[63], 2.f);
}

TEST(Mxfp4, FindsInvalidBlocks) {
  std::vector<uint8_t> values(48, 0x77), scales = {252, 252, 252};
  EXPECT_EQ(find_invalid_mxfp4_block(values, scales), std::nullopt);
  scales[1] = 255;
  EXPECT_EQ(find_invalid_mxfp4_block(values, scales), 1);
  scales = {0, 127, 253};  // 6 * 2^126 overflows
  EXPECT_EQ(find_invalid_mxfp4_block(values, scales), 2);
  std::fill(values.begin(), values.end(), 0x55);  // 3 * 2^126 does not
  EXPECT_EQ(find_invalid_mxfp4_block(values, scales), std::nullopt);
  EXPECT_TRUE(std::isnan(mxfp4_scale(255)));
  EXPECT_EQ(find_invalid_mxfp4_block({}, {}), std::nullopt);
}

TEST(Mxfp4, ChecksItsSizes) {
  std::vector<uint8_t> values(16), scales(1);
  std::vector<float> out(31);
  EXPECT_THROW(decode_mxfp4(values, scales, out), CheckError);
  out.resize(32);
  EXPECT_THROW(decode_mxfp4(std::span(values).first(15), scales, out), CheckError);
}

}  // namespace
}  // namespace briar

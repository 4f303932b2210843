#include "layers/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace briar {
namespace {

RopeScaling scaling(RopeKind kind) {
  RopeScaling s;
  s.kind = kind;
  s.theta = 500000;
  s.factor = 8;
  s.original_max_position_embeddings = 8192;
  return s;
}

double plain(size_t i, double dim) {
  return std::exp(-std::log(500000.0) * 2 * static_cast<double>(i) / dim);
}

TEST(RopeFrequencies, DefaultAndLinear) {
  for (const int64_t dim : {32, 64, 80, 128}) {
    const auto base = rope_frequencies(scaling(RopeKind::kDefault), dim);
    const auto linear = rope_frequencies(scaling(RopeKind::kLinear), dim);
    ASSERT_EQ(base.size(), static_cast<size_t>(dim / 2));
    for (size_t i = 0; i < base.size(); ++i) {
      EXPECT_NEAR(base[i] / plain(i, static_cast<double>(dim)), 1, 1e-13) << i;
      EXPECT_NEAR(linear[i] / base[i], 0.125, 1e-13) << i;
    }
  }
}

// By wavelength, as Meta's own code has it; the product counts turns.
TEST(RopeFrequencies, Llama3KeepsFastPairsAndStretchesSlowOnes) {
  const auto got = rope_frequencies(scaling(RopeKind::kLlama3), 128);
  int kept = 0, stretched = 0, between = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double frequency = plain(i, 128), wavelength = 2 * std::numbers::pi / frequency;
    double want = frequency;
    if (wavelength > 8192 / 1.0) {
      want = frequency / 8;
      ++stretched;
    } else if (wavelength >= 8192 / 4.0) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      want = (1 - smooth) * frequency / 8 + smooth * frequency;
      ++between;
    } else {
      ++kept;
    }
    EXPECT_NEAR(got[i] / want, 1, 1e-12) << i;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(between, 0);
  EXPECT_GT(stretched, 0);
}

// GGUF's conversion of the same scaling: one divisor a pair.
TEST(RopeFrequencies, DivisorsGiveTheSameAsLlama3) {
  const auto want = rope_frequencies(scaling(RopeKind::kLlama3), 64);
  RopeScaling s = scaling(RopeKind::kPerPair);
  for (size_t i = 0; i < want.size(); ++i) s.divisors.push_back(plain(i, 64) / want[i]);
  const auto got = rope_frequencies(s, 64);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i] / want[i], 1, 1e-12) << i;
}

TEST(RopeFrequencies, YarnHasItsEnds) {
  const auto got = rope_frequencies(scaling(RopeKind::kYarn), 128);
  EXPECT_NEAR(got.front() / plain(0, 128), 1, 1e-13);
  EXPECT_NEAR(got.back() / plain(63, 128), 0.125, 1e-13);
}

}  // namespace
}  // namespace briar

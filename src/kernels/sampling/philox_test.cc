#include "kernels/sampling/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace briar {
namespace {

using Words = std::array<uint32_t, 4>;

// kat_vectors of Random123 1.14, "philox4x32 10".
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UniformIsInRangeAndEven) {
  std::array<int, 16> bins{};
  double sum = 0;
  for (uint32_t i = 0; i < 100'000; ++i) {
    const double u = uniform({.seed = 7, .position = i});
    ASSERT_TRUE(u >= 0 && u < 1) << u;
    ++bins[static_cast<size_t>(u * 16)];
    sum += u;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.004);  // 4 standard errors
  for (const int bin : bins) EXPECT_NEAR(bin, 6250, 4 * 77);
}

// Each field of the key matters, high bits included.
TEST(PhiloxTest, EveryFieldOfTheKeyCounts) {
  std::set<double> seen;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (const uint32_t choice : {0u, 1u, 0x80000000u}) {
      for (const uint32_t position : {0u, 1u, 131071u}) {
        for (const auto purpose : {RandomPurpose::kSample, RandomPurpose::kDraft,
                                   RandomPurpose::kAccept, RandomPurpose::kResample}) {
          seen.insert(uniform({seed, choice, position, purpose}));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u * 3 * 3 * 4);
}

}  // namespace
}  // namespace briar

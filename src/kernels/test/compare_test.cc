// The comparator must see each fault that a kernel can have.
#include "kernels/test/compare.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// bf16 output of an fp32 computation.
constexpr Tolerance kBf16{0x1p-8, 0x1p-10, 2e-3};

struct Example {
  std::vector<double> ref;
  std::vector<float> got;
};

// A reference and its rounding to bf16, which is within kBf16.
Example rounded_example() {
  Example e;
  for (uint64_t i = 0; i < 100'000; ++i) {
    e.ref.push_back(gaussian(1, i));
    e.got.push_back(to_float(to_bf16(static_cast<float>(e.ref.back()))));
  }
  return e;
}

TEST(CompareTest, AcceptsRounding) {
  const Example e = rounded_example();
  EXPECT_TRUE(matches("rounded", e.got, e.ref, kBf16));
  EXPECT_GT(compare(e.got, e.ref, kBf16).worst_ratio, 0.4) << "the bound is not near the errors";
}

TEST(CompareTest, SeesOneWrongElement) {
  Example e = rounded_example();
  e.got[77'777] += 0.02f;
  const Comparison c = compare(e.got, e.ref, kBf16);
  EXPECT_EQ(c.num_bad, 1u);
  EXPECT_EQ(c.worst, 77'777u);
  EXPECT_LT(c.rms_error, kBf16.rms) << "a whole-tensor bound alone would pass";
  EXPECT_FALSE(matches("one wrong", e.got, e.ref, kBf16));
}

TEST(CompareTest, SeesSmallBias) {
  Example e = rounded_example();
  for (size_t i = 0; i < e.got.size(); ++i) e.got[i] = static_cast<float>(e.ref[i] * 1.0025);
  EXPECT_EQ(compare(e.got, e.ref, kBf16).num_bad, 0u) << "an elementwise bound alone would pass";
  EXPECT_FALSE(matches("bias", e.got, e.ref, kBf16));
}

TEST(CompareTest, SeesNan) {
  Example e = rounded_example();
  e.got[5] = kNan;
  EXPECT_EQ(compare(e.got, e.ref, kBf16).num_bad, 1u);
  EXPECT_FALSE(matches("stray NaN", e.got, e.ref, kBf16));
  e.ref[5] = kNan;
  EXPECT_TRUE(matches("expected NaN", e.got, e.ref, kBf16));
  e.got[5] = 1;
  EXPECT_FALSE(matches("lost NaN", e.got, e.ref, kBf16));
}

TEST(CompareTest, SeesInfinityOutOfPlace) {
  const std::vector<double> ref = {1, kInf, -kInf};
  EXPECT_TRUE(matches("same", std::vector<float>{1, kInf, -kInf}, ref, kBf16));
  EXPECT_FALSE(matches("sign", std::vector<float>{1, -kInf, -kInf}, ref, kBf16));
  EXPECT_FALSE(matches("finite", std::vector<float>{1, 3e38f, -kInf}, ref, kBf16));
  EXPECT_FALSE(matches("stray", std::vector<float>{kInf, kInf, -kInf}, ref, kBf16));
}

TEST(CompareTest, ZeroReferenceWantsZero) {
  const std::vector<double> ref(10, 0.0);
  EXPECT_TRUE(matches("zeros", std::vector<float>(10, 0.f), ref, kBf16));
  EXPECT_FALSE(matches("not zeros", std::vector<float>(10, 1e-30f), ref, kBf16));
}

TEST(CompareTest, MessageNamesTheWorst) {
  const std::vector<double> ref = {1, 2, 3, 4};
  const auto result = matches("op", std::vector<float>{1, 2.5f, 3.1f, 4}, ref, {0.01, 0, 1});
  EXPECT_STREQ(result.message(),
               "op: 2 of 4 elements out of tolerance; worst at 1: got 2.5, want 2 (25.0 times the "
               "limit)");
  EXPECT_FALSE(matches("short", std::vector<float>{1}, ref, kBf16));
}

TEST(TestTensorTest, SeesWritesOutsideTheElements) {
  for (const int64_t gap : {0, 3}) {
    TestTensor t(DType::kBf16, {4, 5}, gap);
    fill_random(t, 1);
    EXPECT_TRUE(t.guards_intact());
    t.view().ptr<Bf16>()[-1] = {0};
    EXPECT_FALSE(t.guards_intact());
  }
  TestTensor t(DType::kFp32, {4, 5}, 2);
  t.view().ptr<float>()[5] = 0;  // the gap after the first row
  EXPECT_FALSE(t.guards_intact());
}

TEST(TestTensorTest, ElementsAreRoundedToTheDtype) {
  TestTensor t(DType::kBf16, {2, 3}, 1);
  t.set(4, 1.0 + 0x1p-9);
  EXPECT_EQ(t.get(4), 1.f);
  EXPECT_EQ(to_float(t.view().ptr<Bf16>()[t.view().stride(0) + 1]), 1.f);
}

}  // namespace
}  // namespace briar

#include "kernels/moe/swiglu.h"

#include <limits>

#include "kernels/moe/swiglu_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(SwigluTest);

constexpr Tolerance kToFp32{3e-7, 3e-8, 1e-7};
constexpr Tolerance kToBf16{0x1p-8, 3e-8, 2.4e-3};
constexpr float kAlpha = 1.702f, kLimit = 7;

void check(const TestTensor& x, int64_t num_rows, int64_t size, DType dtype, int64_t gap = 0) {
  SCOPED_TRACE(testing::Message() << num_rows << " x " << size << " " << to_string(dtype));
  TestTensor out(dtype, {num_rows, size}, gap);
  swiglu(test_stream(), {x.view(), out.view(), kAlpha, kLimit});
  EXPECT_TRUE(matches(dtype == DType::kFp32 ? "swiglu fp32" : "swiglu bf16", out.values(),
                      swiglu_ref(x.values(), kAlpha, kLimit),
                      dtype == DType::kFp32 ? kToFp32 : kToBf16));
  EXPECT_TRUE(out.guards_intact());
}

TEST_P(SwigluTest, SizesAndPatterns) {
  for (const int64_t size : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 61, 192, 2880}) {
    for (const int64_t num_rows : {0, 1, 5}) {
      for (const Pattern pattern : kPatterns) {
        TestTensor x(DType::kFp32, {num_rows, 2 * size});
        fill_random(x, 5, 3, pattern);  // some values reach the limit of 7
        check(x, num_rows, size, DType::kFp32);
        check(x, num_rows, size, DType::kBf16, 3);
      }
    }
  }
}

// Around the clamps, from far negative gates, where the sigmoid vanishes, to far positive ones.
TEST_P(SwigluTest, WholeRange) {
  constexpr int64_t kSize = 4001;
  TestTensor x(DType::kFp32, {2, 2 * kSize});
  for (int64_t i = 0; i < kSize; ++i) {
    const double value = static_cast<double>(i - kSize / 2) * 0.01;  // -20 to 20
    x.set(2 * i, value);
    x.set(2 * i + 1, -value);
    x.set(2 * (kSize + i), value * 1000);
    x.set(2 * (kSize + i) + 1, value);
  }
  check(x, 2, kSize, DType::kFp32);
  check(x, 2, kSize, DType::kBf16);
}

TEST_P(SwigluTest, InfinityIsClampedAndNanPasses) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t size : {1, 8, 17, 35}) {
    for (int64_t at = 0; at < size; ++at) {
      TestTensor x(DType::kFp32, {4, 2 * size});
      fill_random(x, 6);
      x.set(2 * at, kInf);
      x.set(2 * size + 2 * at + 1, -kInf);
      x.set(4 * size + 2 * at, kNan);
      x.set(6 * size + 2 * at + 1, kNan);
      check(x, 4, size, DType::kFp32);
      check(x, 4, size, DType::kBf16);
    }
  }
}

TEST_P(SwigluTest, SameBitsAloneInABatchAndOnAnyThreads) {
  TestTensor x(DType::kFp32, {37, 2 * 2880});
  fill_random(x, 7, 3);
  TestTensor first(DType::kFp32, {37, 2880});
  swiglu(test_stream(1), {x.view(), first.view(), kAlpha, kLimit});
  for (const int threads : {1, 2, 3}) {
    TestTensor out(DType::kFp32, {37, 2880});
    swiglu(test_stream(threads), {x.view(), out.view(), kAlpha, kLimit});
    EXPECT_EQ(out.bits(), first.bits()) << threads << " threads";
  }
  for (const int64_t row : {0, 20, 36}) {
    TestTensor out(DType::kFp32, {1, 2880});
    swiglu(test_stream(), {x.view().rows(row, row + 1), out.view(), kAlpha, kLimit});
    EXPECT_EQ(out.bits(), first.row_bits(row, row + 1)) << "row " << row;
  }
}

}  // namespace
}  // namespace briar

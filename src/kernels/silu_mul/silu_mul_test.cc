#include "kernels/silu_mul/silu_mul.h"

#include <limits>

#include "kernels/silu_mul/silu_mul_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(SiluMulTest);

constexpr Tolerance kToFp32{3e-7, 3e-8, 1e-7};
constexpr Tolerance kToBf16{0x1p-8, 3e-8, 2.4e-3};

void check(const TestTensor& x, int64_t num_rows, int64_t size, DType dtype, int64_t gap = 0) {
  SCOPED_TRACE(testing::Message() << num_rows << " x " << size << " " << to_string(dtype));
  TestTensor out(dtype, {num_rows, size}, gap);
  silu_mul(test_stream(), {x.view(), out.view()});
  EXPECT_TRUE(matches(dtype == DType::kFp32 ? "silu_mul fp32" : "silu_mul bf16", out.values(),
                      silu_mul_ref(x.values(), num_rows),
                      dtype == DType::kFp32 ? kToFp32 : kToBf16));
  EXPECT_TRUE(out.guards_intact());
}

TEST_P(SiluMulTest, SizesAndPatterns) {
  for (const int64_t size : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 61, 192, 1536}) {
    for (const int64_t num_rows : {0, 1, 5}) {
      for (const Pattern pattern : kPatterns) {
        TestTensor x(DType::kFp32, {num_rows, 2 * size});
        fill_random(x, 5, 3, pattern);
        check(x, num_rows, size, DType::kFp32);
        check(x, num_rows, size, DType::kBf16, 3);
      }
    }
  }
}

// From gates whose sigmoid vanishes to those where it is one.
TEST_P(SiluMulTest, WholeRange) {
  constexpr int64_t kSize = 4001;
  TestTensor x(DType::kFp32, {1, 2 * kSize});
  for (int64_t i = 0; i < kSize; ++i) {
    const double value = static_cast<double>(i - kSize / 2) * 0.01;  // -20 to 20
    x.set(i, value);
    x.set(kSize + i, 1 - value);
  }
  check(x, 1, kSize, DType::kFp32);
  check(x, 1, kSize, DType::kBf16);
}

TEST_P(SiluMulTest, NanPasses) {
  for (const int64_t size : {1, 8, 17, 35}) {
    for (int64_t at = 0; at < 2 * size; ++at) {
      TestTensor x(DType::kFp32, {1, 2 * size});
      fill_random(x, 6);
      x.set(at, std::numeric_limits<float>::quiet_NaN());
      check(x, 1, size, DType::kFp32);
      check(x, 1, size, DType::kBf16);
    }
  }
}

TEST_P(SiluMulTest, SameBitsAloneInABatchAndOnAnyThreads) {
  TestTensor x(DType::kFp32, {37, 2 * 1536});
  fill_random(x, 7, 3);
  TestTensor first(DType::kFp32, {37, 1536});
  silu_mul(test_stream(1), {x.view(), first.view()});
  for (const int threads : {1, 2, 3}) {
    TestTensor out(DType::kFp32, {37, 1536});
    silu_mul(test_stream(threads), {x.view(), out.view()});
    EXPECT_EQ(out.bits(), first.bits()) << threads << " threads";
  }
  for (const int64_t row : {0, 20, 36}) {
    TestTensor out(DType::kFp32, {1, 1536});
    silu_mul(test_stream(), {x.view().rows(row, row + 1), out.view()});
    EXPECT_EQ(out.bits(), first.row_bits(row, row + 1)) << "row " << row;
  }
}

}  // namespace
}  // namespace briar

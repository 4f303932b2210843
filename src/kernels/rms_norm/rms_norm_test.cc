#include "kernels/rms_norm/rms_norm.h"

#include <limits>

#include "kernels/rms_norm/rms_norm_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(RmsNormTest);

constexpr Tolerance kToFp32{1e-6, 0, 7e-7};
constexpr Tolerance kToBf16{0x1p-8, 0, 2e-3};
constexpr float kEps = 1e-5f;

struct Case {
  int64_t num_tokens = 5, hidden_size = 64;
  DType weight = DType::kBf16, out = DType::kFp32;
  bool with_x = true;
  std::vector<int32_t> row_index = {};  // empty: all rows
  int64_t gap = 0;
  Pattern pattern = Pattern::kNormal;
  int threads = 2;
};

struct Tensors {
  explicit Tensors(const Case& c)
      : x(DType::kFp32, {c.num_tokens, c.hidden_size}, c.gap),
        residual(DType::kFp32, {c.num_tokens, c.hidden_size}, c.gap),
        weight(c.weight, {c.hidden_size}),
        row_index(int_tensor(c.row_index)),
        out(c.out, {c.row_index.empty() ? c.num_tokens : row_index.size(), c.hidden_size}, c.gap) {
    fill_random(x, 1, 1, c.pattern);
    fill_random(residual, 2, 3, c.pattern);
    fill_random(weight, 3, 1, Pattern::kNormal);
  }
  void run(const Case& c) {
    rms_norm(test_stream(c.threads),
             {c.with_x ? x.view() : TensorView(), residual.view(), weight.view(),
              c.row_index.empty() ? TensorView() : row_index.view(), out.view(), kEps});
  }
  TestTensor x, residual, weight, row_index, out;
};

void check(const Case& c, Tensors& t) {
  SCOPED_TRACE(testing::Message() << c.num_tokens << " x " << c.hidden_size << " weight "
                                  << to_string(c.weight) << " out " << to_string(c.out) << " x "
                                  << c.with_x << " gap " << c.gap << " pattern "
                                  << static_cast<int>(c.pattern));
  const std::vector<float> x = t.x.values(), weight = t.weight.values();
  std::vector<float> residual = t.residual.values();
  std::vector<double> ref;
  const auto h = static_cast<size_t>(c.hidden_size);
  for (int64_t i = 0; i < t.out.num_rows() && h > 0; ++i) {
    const size_t begin =
        h * static_cast<size_t>(c.row_index.empty() ? i : c.row_index[static_cast<size_t>(i)]);
    const auto row =
        rms_norm_ref(c.with_x ? std::span(x).subspan(begin, h) : std::span<const float>(),
                     std::span(residual).subspan(begin, h), weight, kEps);
    ref.insert(ref.end(), row.begin(), row.end());
  }
  t.run(c);
  EXPECT_TRUE(matches(c.out == DType::kFp32 ? "rms_norm fp32" : "rms_norm bf16", t.out.values(),
                      ref, c.out == DType::kFp32 ? kToFp32 : kToBf16));
  EXPECT_TRUE(matches("rms_norm residual", t.residual.values(),
                      std::vector<double>(residual.begin(), residual.end()), kExact));
  EXPECT_TRUE(t.out.guards_intact() && t.residual.guards_intact());
}

void check(const Case& c) {
  Tensors t(c);
  check(c, t);
}

TEST_P(RmsNormTest, Sizes) {
  for (const int64_t hidden_size :
       {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 127, 192, 2880, 8192}) {
    for (const int64_t num_tokens : {0, 1, 2, 13}) {
      for (const DType out : {DType::kFp32, DType::kBf16}) {
        check({.num_tokens = num_tokens, .hidden_size = hidden_size, .out = out});
        check({.num_tokens = num_tokens,
               .hidden_size = hidden_size,
               .weight = DType::kFp32,
               .out = out,
               .with_x = false,
               .gap = 3});
      }
    }
  }
}

TEST_P(RmsNormTest, Patterns) {
  for (const Pattern pattern : kPatterns) {
    for (const DType out : {DType::kFp32, DType::kBf16}) {
      check({.hidden_size = 2880, .out = out, .pattern = pattern});
      check({.hidden_size = 61, .out = out, .gap = 1, .pattern = pattern});
    }
  }
}

// Rows that the index leaves out keep their residual as it was.
TEST_P(RmsNormTest, RowIndexChoosesAndOrders) {
  for (const std::vector<int32_t>& rows : std::vector<std::vector<int32_t>>{
           {12}, {0}, {12, 0, 5}, {3, 1, 2, 4, 0, 12, 11, 10, 9, 8, 7, 6, 5}}) {
    for (const bool with_x : {false, true}) {
      check({.num_tokens = 13, .hidden_size = 192, .with_x = with_x, .row_index = rows, .gap = 2});
    }
  }
}

TEST_P(RmsNormTest, EmptyRowIndexWritesNothing) {
  Tensors t({.num_tokens = 3});
  const auto before = t.residual.bits();
  TestTensor none(DType::kInt32, {0}), out(DType::kFp32, {0, 64});
  rms_norm(test_stream(),
           {t.x.view(), t.residual.view(), t.weight.view(), none.view(), out.view(), kEps});
  EXPECT_EQ(t.residual.bits(), before);
  EXPECT_TRUE(out.guards_intact());
}

TEST_P(RmsNormTest, InfinityAndNanStayInTheirRow) {
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t column : {0, 40, 60}) {
      for (const DType out : {DType::kFp32, DType::kBf16}) {
        const Case c{.hidden_size = 61, .out = out};
        Tensors t(c);
        t.x.set(2 * 61 + column, special);
        check(c, t);
      }
    }
  }
}

TEST_P(RmsNormTest, SameBitsAloneInABatchAndOnAnyThreads) {
  const Case c{.num_tokens = 67, .hidden_size = 2880, .out = DType::kFp32};
  Tensors first(c);
  first.run(c);
  for (const int threads : {1, 2, 3}) {
    Case again = c;
    again.threads = threads;
    Tensors t(again);
    t.run(again);
    EXPECT_EQ(t.out.bits(), first.out.bits()) << threads << " threads";
  }
  for (const int64_t row : {0, 1, 33, 66}) {
    const Case one{.num_tokens = 1, .hidden_size = 2880};
    Tensors t(one);
    const Tensors inputs(c);
    t.x.copy_row(0, inputs.x, row);
    t.residual.copy_row(0, inputs.residual, row);
    t.run(one);
    EXPECT_EQ(t.out.bits(), first.out.row_bits(row, row + 1)) << "row " << row;
    EXPECT_EQ(t.residual.bits(), first.residual.row_bits(row, row + 1)) << "row " << row;
  }
}

}  // namespace
}  // namespace briar

#include "kernels/moe/grouped_linear.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/linear/linear.h"
#include "kernels/moe/grouped_linear_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_mxfp4.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(GroupedLinearTest);

constexpr Tolerance kToFp32{4e-7, 8e-7, 2e-7};
constexpr Tolerance kToBf16{0x1p-8, 8e-7, 2e-3};

// Rows of each expert, zero included.
using Counts = std::vector<int32_t>;

struct Case {
  Counts counts;
  int64_t n = 33, k = 64;
  DType x = DType::kBf16, weight = DType::kBf16, out = DType::kFp32;
  bool gathers = true, has_bias = true;
  int64_t gap = 0;
};

std::vector<int32_t> offsets_of(const Counts& counts) {
  std::vector<int32_t> offsets = {0};
  for (const int32_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

// Several rows of out may come from one row of x, as with several experts a token.
std::vector<int32_t> gather_of(int32_t num_rows) {
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < num_rows; ++i) rows.push_back((i * 7 + 3) % (num_rows / 2 + 1));
  return rows;
}

struct Tensors {
  explicit Tensors(const Case& c)
      : num_experts(static_cast<int64_t>(c.counts.size())),
        offsets(int_tensor(offsets_of(c.counts))),
        num_rows(offsets.get_int(num_experts)),
        row_index(int_tensor(gather_of(static_cast<int32_t>(num_rows)))),
        x(c.x, {c.gathers ? num_rows / 2 + 1 : num_rows, c.k}, c.gap),
        weight(c.weight, {num_experts, c.n, c.k}),
        bias(DType::kBf16, {num_experts, c.n}),
        out(c.out, {num_rows, c.n}, c.gap) {
    fill_random(x, 1);
    fill_random(weight, 2, 0.1);
    fill_random(bias, 3);
    args = {
        x.view(),     c.gathers ? row_index.view() : TensorView(), offsets.view(), weight.view(),
        TensorView(), c.has_bias ? bias.view() : TensorView(),     out.view()};
  }
  int64_t num_experts;
  TestTensor offsets;
  int64_t num_rows;
  TestTensor row_index, x, weight, bias, out;
  GroupedLinearArgs args;
};

std::vector<double> reference(const Case& c, const Tensors& t, const TestTensor& weight) {
  return grouped_linear_ref(t.x.values(), c.gathers ? t.row_index.ints() : std::vector<int32_t>(),
                            t.offsets.ints(), weight.values(),
                            c.has_bias ? t.bias.values() : std::vector<float>(),
                            static_cast<size_t>(c.n), static_cast<size_t>(c.k));
}

void check(const Case& c, Tensors& t) {
  SCOPED_TRACE(fmt::format("{} experts {} rows n {} k {} x {} weight {} out {} gathers {} gap {}",
                           t.num_experts, t.num_rows, c.n, c.k, to_string(c.x), to_string(c.weight),
                           to_string(c.out), c.gathers, c.gap));
  grouped_linear(test_stream(), t.args);
  const auto ref = reference(c, t, t.weight);
  EXPECT_TRUE(matches(c.out == DType::kFp32 ? "grouped_linear fp32" : "grouped_linear bf16",
                      t.out.values(), ref,
                      product_tolerance(c.out == DType::kFp32 ? kToFp32 : kToBf16, c.out)));
  EXPECT_TRUE(t.out.guards_intact());
}

void check(const Case& c) {
  Tensors t(c);
  check(c, t);
}

const std::vector<Counts> kCounts = {{1},          {0},           {5},
                                     {0, 0, 1, 0}, {1, 1, 1, 1},  {3, 0, 17, 1, 0, 2, 9, 0},
                                     {0, 33, 0},   {40, 0, 0, 1}, {130, 0, 257, 1}};

TEST_P(GroupedLinearTest, Routings) {
  for (const Counts& counts : kCounts) {
    for (const bool gathers : {false, true}) {
      for (const auto& [n, k] : {std::pair{1, 1}, {16, 32}, {17, 61}, {64, 192}, {5, 333}}) {
        check({.counts = counts, .n = n, .k = k, .gathers = gathers});
        check({.counts = counts, .n = n, .k = k, .gathers = gathers, .gap = 3});
      }
    }
  }
}

TEST_P(GroupedLinearTest, EveryCombinationOfTypes) {
  for (const DType x : {DType::kFp32, DType::kBf16}) {
    for (const DType weight : {DType::kFp32, DType::kBf16}) {
      for (const DType out : {DType::kFp32, DType::kBf16}) {
        for (const bool has_bias : {false, true}) {
          check({.counts = {3, 0, 17, 1},
                 .n = 45,
                 .k = 192,
                 .x = x,
                 .weight = weight,
                 .out = out,
                 .has_bias = has_bias});
        }
      }
    }
  }
}

TEST_P(GroupedLinearTest, LargeShape) {
  check({.counts = {2, 0, 1, 1}, .n = 5760, .k = 2880, .out = DType::kBf16});
}

TEST_P(GroupedLinearTest, NanAndInfinityStayInTheirExpert) {
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Case c{.counts = {2, 3, 0, 7}};
    Tensors t(c);
    t.weight.set((c.n + 7) * c.k + 5, special);  // expert 1
    t.x.set(4 * c.k + c.k - 1, special);
    check(c, t);
  }
}

// Each row is, to the bit, what linear() gives for it alone, on any threads.
TEST_P(GroupedLinearTest, SameBitsAsLinearAlone) {
  BRIAR_CPU_ONLY("few and many rows take different kernels");
  for (const DType weight : {DType::kFp32, DType::kBf16}) {
    for (const Counts& counts : kCounts) {
      const Case c{.counts = counts, .n = 61, .k = 192, .weight = weight};
      Tensors t(c);
      const std::vector<int32_t> offsets = offsets_of(counts);
      for (const int threads : {1, 2, 3}) {
        grouped_linear(test_stream(threads), t.args);
        int64_t expert = 0;
        for (int64_t row = 0; row < t.num_rows; ++row) {
          while (offsets[static_cast<size_t>(expert) + 1] <= row) ++expert;
          TestTensor out(DType::kFp32, {1, c.n});
          const int64_t from = t.row_index.get_int(row);
          linear(test_stream(), {t.args.x.rows(from, from + 1), t.args.weight.at(expert),
                                 TensorView(), t.args.bias.at(expert), out.view()});
          ASSERT_EQ(t.out.row_bits(row, row + 1), out.bits())
              << "row " << row << " threads " << threads;
        }
      }
    }
  }
}

TEST_P(GroupedLinearTest, Mxfp4EqualsItsExpansionToTheBit) {
  for (const Counts& counts : kCounts) {
    for (const auto& [low, high] : {std::pair{118, 128}, {0, 2}, {240, 248}}) {
      const Case c{.counts = counts, .n = 35, .k = 192};
      Tensors t(c);
      const Mxfp4Weights w(t.num_experts, c.n, c.k, 5, low, high);
      t.args.weight = w.expanded.view();
      grouped_linear(test_stream(), t.args);
      const auto want = t.out.bits();
      t.args.weight = w.view;
      t.args.weight_scales = w.scales.view();
      for (const int threads : {1, 2, 3}) {
        grouped_linear(test_stream(threads), t.args);
        if (on_cuda()) {  // which numbers k by what it loads at once
          EXPECT_TRUE(matches("grouped_linear mxfp4", t.out.values(), reference(c, t, w.expanded),
                              product_tolerance(kToFp32, c.out)));
          break;
        }
        EXPECT_EQ(t.out.bits(), want) << threads << " threads, scales from " << low;
      }
    }
  }
}

}  // namespace
}  // namespace briar

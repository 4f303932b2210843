#include "kernels/linear/linear.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/linear/linear_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_mxfp4.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(LinearTest);

constexpr Tolerance kToFp32{1e-6, 2e-6, 5e-7};
constexpr Tolerance kToBf16{0x1p-8, 2e-6, 2e-3};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Bias { kNone, kFp32, kBf16 };

struct Case {
  int64_t m, n, k;
  DType x = DType::kBf16, weight = DType::kBf16, out = DType::kFp32;
  Bias bias = Bias::kBf16;
  int64_t gap = 0;
  Pattern pattern = Pattern::kNormal;
};

struct Tensors {
  explicit Tensors(const Case& c)
      : x(c.x, {c.m, c.k}, c.gap),
        weight(c.weight, {c.n, c.k}),
        bias(c.bias == Bias::kBf16 ? DType::kBf16 : DType::kFp32, {c.n}),
        out(c.out, {c.m, c.n}, c.gap) {
    fill_random(x, 1, 1, c.pattern);
    fill_random(weight, 2, 0.1, c.pattern);
    fill_random(bias, 3);
    args = {x.view(), weight.view(), TensorView(),
            c.bias == Bias::kNone ? TensorView() : bias.view(), out.view()};
  }
  std::vector<double> reference(const Case& c) const {
    return linear_ref(x.values(), weight.values(),
                      c.bias == Bias::kNone ? std::vector<float>() : bias.values(),
                      static_cast<size_t>(c.m), static_cast<size_t>(c.n), static_cast<size_t>(c.k));
  }
  TestTensor x, weight, bias, out;
  LinearArgs args;
};

void check(const Case& c, Tensors& t) {
  SCOPED_TRACE(fmt::format("m {} n {} k {} x {} weight {} out {} bias {} gap {} pattern {}", c.m,
                           c.n, c.k, to_string(c.x), to_string(c.weight), to_string(c.out),
                           static_cast<int>(c.bias), c.gap, static_cast<int>(c.pattern)));
  linear(test_stream(), t.args);
  EXPECT_TRUE(matches(c.out == DType::kFp32 ? "linear fp32" : "linear bf16", t.out.values(),
                      t.reference(c),
                      product_tolerance(c.out == DType::kFp32 ? kToFp32 : kToBf16, c.out)));
  EXPECT_TRUE(t.out.guards_intact());
}

void check(const Case& c) {
  Tensors t(c);
  check(c, t);
}

TEST_P(LinearTest, SizesAroundLanesAndTiles) {
  for (const int64_t m : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33}) {
    for (const int64_t n : {0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 33}) {
      for (const int64_t k : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61}) check({m, n, k});
    }
  }
}

TEST_P(LinearTest, EveryCombinationOfTypes) {
  for (const DType x : {DType::kFp32, DType::kBf16}) {
    for (const DType weight : {DType::kFp32, DType::kBf16}) {
      for (const DType out : {DType::kFp32, DType::kBf16}) {
        for (const Bias bias : {Bias::kNone, Bias::kFp32, Bias::kBf16}) {
          for (const int64_t gap : {0, 3}) {
            for (const int64_t m : {1, 5, 13}) {
              check({m, 37, 192, x, weight, out, bias, gap});
              check({m, 64, 333, x, weight, out, bias, gap});
            }
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, Patterns) {
  for (const Pattern pattern : kPatterns) {
    for (const DType out : {DType::kFp32, DType::kBf16}) {
      check({.m = 3, .n = 61, .k = 2880, .out = out, .bias = Bias::kNone, .pattern = pattern});
      check({.m = 19, .n = 61, .k = 192, .x = DType::kFp32, .out = out, .pattern = pattern});
    }
  }
}

// Around the tiles of kernels for many rows.
TEST_P(LinearTest, ManyRows) {
  for (const int64_t m : {63, 64, 65, 127, 128, 129, 300}) {
    for (const int64_t n : {8, 96, 128, 129}) {
      for (const int64_t k : {32, 96, 192}) check({.m = m, .n = n, .k = k});
    }
  }
  check({.m = 130, .n = 250, .k = 2880, .out = DType::kBf16});
}

TEST_P(LinearTest, NoInputsGiveTheBias) {
  for (const Bias bias : {Bias::kNone, Bias::kFp32}) check({.m = 3, .n = 17, .k = 0, .bias = bias});
}

TEST_P(LinearTest, LargestRealShapes) {
  check({.m = 5, .n = 5120, .k = 2880});
  check({.m = 37, .n = 640, .k = 4096, .out = DType::kBf16});
  check({.m = 2, .n = 201088, .k = 64, .bias = Bias::kNone});
}

TEST_P(LinearTest, InfinityAndNanStayInTheirRowAndColumn) {
  for (const float special : {kInf, -kInf, kNan}) {
    for (const int64_t m : {1, 4, 9}) {
      for (const int64_t k : {61, 64}) {
        const Case c{.m = m, .n = 21, .k = k};
        Tensors in_x(c);
        in_x.x.set(m / 2 * k + k - 1, special);
        in_x.weight.set(3 * k + k - 1, 0);  // infinity times zero is a NaN
        check(c, in_x);
        Tensors in_weight(c);
        in_weight.weight.set(20 * k + 5, special);
        check(c, in_weight);
      }
    }
  }
}

// A row's bits depend on neither its company nor the threads.
TEST_P(LinearTest, SameBitsAloneInABatchAndOnAnyThreads) {
  BRIAR_CPU_ONLY("few and many rows take different kernels");
  for (const DType x : {DType::kFp32, DType::kBf16}) {
    for (const DType weight : {DType::kFp32, DType::kBf16}) {
      for (const auto& [n, k] : {std::pair{61, 192}, {64, 2880}, {130, 77}}) {
        const Case alone{.m = 1, .n = n, .k = k, .x = x, .weight = weight};
        const Case most{.m = 70, .n = n, .k = k, .x = x, .weight = weight};
        Tensors all(most), one(alone);
        std::vector<std::vector<uint8_t>> rows;
        for (int64_t row = 0; row < most.m; ++row) {
          one.args.x = all.args.x.rows(row, row + 1);
          linear(test_stream(1), one.args);
          rows.push_back(one.out.bits());
        }
        for (int64_t m = 2; m <= most.m; m += m < 20 ? 1 : 10) {
          const int threads = 1 + static_cast<int>(m % 3);
          LinearArgs args = all.args;
          args.x = args.x.rows(0, m);
          args.out = args.out.rows(0, m);
          linear(test_stream(threads), args);
          for (int64_t row = 0; row < m; ++row) {
            ASSERT_EQ(all.out.row_bits(row, row + 1), rows[static_cast<size_t>(row)])
                << "row " << row << " of " << m << ", n " << n << ", k " << k << ", " << threads
                << " threads";
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, SameBitsForAnyOutputWidth) {
  const Case c{.m = 6, .n = 150, .k = 192};
  Tensors all(c);
  linear(test_stream(), all.args);
  for (const int64_t n : {1, 2, 5, 16, 31, 77, 149}) {
    TestTensor out(DType::kFp32, {6, n});
    linear(test_stream(3), {all.args.x, all.args.weight.rows(0, n), TensorView(),
                            all.args.bias.columns(0, n), out.view()});
    for (int64_t i = 0; i < 6 * n; ++i)
      ASSERT_EQ(out.get(i), all.out.get(i / n * 150 + i % n)) << n;
  }
}

void check_mxfp4(const Mxfp4Weights& w, int64_t m, int64_t n, int64_t k, DType x_dtype,
                 DType out_dtype) {
  SCOPED_TRACE(fmt::format("m {} n {} k {} x {}", m, n, k, to_string(x_dtype)));
  TestTensor x(x_dtype, {m, k}), bias(DType::kBf16, {n}), got(out_dtype, {m, n}),
      want(out_dtype, {m, n});
  fill_random(x, 1);
  fill_random(bias, 3);
  linear(test_stream(), {x.view(), w.view, w.scales.view(), bias.view(), got.view()});
  linear(test_stream(), {x.view(), w.expanded.view(), TensorView(), bias.view(), want.view()});
  if (!on_cuda()) {  // the GPU numbers k by what it loads at once
    EXPECT_EQ(got.bits(), want.bits());
  }
  EXPECT_TRUE(got.guards_intact());
  const auto ref =
      linear_ref(x.values(), w.expanded.values(), bias.values(), static_cast<size_t>(m),
                 static_cast<size_t>(n), static_cast<size_t>(k));
  EXPECT_TRUE(matches("linear mxfp4", got.values(), ref,
                      product_tolerance(out_dtype == DType::kFp32 ? kToFp32 : kToBf16, out_dtype)));
}

TEST_P(LinearTest, Mxfp4EqualsItsExpansionToTheBit) {
  for (const int64_t k : {32, 64, 96, 160, 192, 2880}) {
    for (const int64_t n : {1, 5, 16, 61}) {
      const Mxfp4Weights w(0, n, k, static_cast<uint64_t>(n + k), 118, 128);
      for (const int64_t m : {1, 2, 3, 7, 17, 40}) {
        check_mxfp4(w, m, n, k, DType::kBf16, DType::kFp32);
        check_mxfp4(w, m, n, k, DType::kFp32, DType::kBf16);
      }
    }
  }
  const Mxfp4Weights w(0, 130, 160, 5, 118, 128);
  for (const int64_t m : {64, 65, 131}) check_mxfp4(w, m, 130, 160, DType::kBf16, DType::kFp32);
}

// Scale 0 makes bf16 denormals; up to 252 no value overflows.
TEST_P(LinearTest, Mxfp4ExtremeScales) {
  for (const auto& [low, high] : {std::pair{0, 0}, {0, 3}, {100, 150}, {245, 248}}) {
    const Mxfp4Weights w(0, 21, 64, 77, low, high);
    for (const int64_t m : {1, 9}) check_mxfp4(w, m, 21, 64, DType::kBf16, DType::kFp32);
  }
  Mxfp4Weights w(0, 1, 32, 1, 252, 252);
  for (int value = 0; value < 256; ++value) {
    for (int64_t i = 0; i < 16; ++i) w.bytes.set(i, i == 3 ? value : 0);
    for (int64_t at = 6; at < 8; ++at) {
      TestTensor x(DType::kFp32, {1, 32}), out(DType::kFp32, {1, 1});
      for (int64_t i = 0; i < 32; ++i) x.set(i, i == at ? 1 : 0);
      linear(test_stream(), {x.view(), w.view, w.scales.view(), TensorView(), out.view()});
      constexpr float kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      const int nibble = at == 6 ? value & 15 : value >> 4;
      EXPECT_EQ(out.get(0), (nibble & 8 ? -1.f : 1.f) * kValues[nibble & 7] * 0x1p125f) << value;
    }
  }
}

}  // namespace
}  // namespace briar

#include "kernels/quantized_linear/quantized_linear.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/quantized_linear/layout.h"
#include "kernels/quantized_linear/quantized_linear_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

// Products with block-quantised weights are the CPU's alone.
BRIAR_TEST_TARGETS(QuantizedLinearTest, TestTarget::kAvx2, TestTarget::kAvx512,
                   TestTarget::kAvx512Bf16);

constexpr BlockFormat kFormats[] = {BlockFormat::kQ8_0, BlockFormat::kQ4_0, BlockFormat::kQ4_1,
                                    BlockFormat::kQ4_K, BlockFormat::kQ6_K};
constexpr Tolerance kToFp32{1e-6, 1e-6, 3e-7};
constexpr Tolerance kToBf16{0x1p-8, 2e-6, 2e-3};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Offsets of the fp16 numbers of a block; the last of Q6_K.
std::vector<size_t> fp16_offsets(BlockFormat format) {
  switch (format) {
    case BlockFormat::kQ6_K: return {208};
    case BlockFormat::kQ4_1:
    case BlockFormat::kQ4_K: return {0, 2};
    default: return {0};
  }
}

// Random bytes as blocks, with fp16 numbers of either sign from 2^-8 to 2^-5.
std::vector<uint8_t> random_blocks(const QuantizedShape& s, uint64_t seed) {
  const int64_t size = s.out_features * source_row_bytes(s.format, s.in_features);
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(random_bits(seed, i));
  }
  const auto step = static_cast<size_t>(block_bytes(s.format));
  for (size_t block = 0; block < bytes.size(); block += step) {
    for (const size_t at : fp16_offsets(s.format)) {
      const uint8_t top = bytes[block + at + 1];
      bytes[block + at + 1] = static_cast<uint8_t>((top & 0x80) | (0x1c + (top & 0x0b)));
    }
  }
  return bytes;
}

struct Weights {
  Weights(QuantizedShape s, uint64_t seed) : Weights(s, random_blocks(s, seed)) {}
  Weights(QuantizedShape s, std::vector<uint8_t> blocks)
      : shape(s), source(std::move(blocks)), packed(DType::kUint8, {packed_bytes(s)}) {
    pack(s, source.data(), 0, s.out_features, packed.view().ptr<uint8_t>());
  }
  std::vector<double> values() const { return dequantize_ref(shape.format, source); }

  QuantizedShape shape;
  std::vector<uint8_t> source;
  TestTensor packed;
};

enum class Bias { kNone, kFp32, kBf16 };

struct Case {
  int64_t m, n, k;
  BlockFormat format = BlockFormat::kQ4_1;
  DType x = DType::kBf16, out = DType::kFp32;
  Bias bias = Bias::kNone;
  int64_t gap = 0;
  Pattern pattern = Pattern::kNormal;
};

struct Tensors {
  explicit Tensors(const Case& c) : Tensors(c, Weights({c.format, c.n, c.k}, 2)) {}
  Tensors(const Case& c, Weights w)
      : x(c.x, {c.m, c.k}, c.gap),
        weight(std::move(w)),
        bias(c.bias == Bias::kBf16 ? DType::kBf16 : DType::kFp32, {c.n}),
        out(c.out, {c.m, c.n}, c.gap) {
    fill_random(x, 1, 1, c.pattern);
    fill_random(bias, 3);
    args = {x.view(), weight.packed.view(), c.format,
            c.bias == Bias::kNone ? TensorView() : bias.view(), out.view()};
  }
  std::vector<double> reference(const Case& c) const {
    return quantized_linear_ref(
        x.values(), weight.values(), c.bias == Bias::kNone ? std::vector<float>() : bias.values(),
        static_cast<size_t>(c.m), static_cast<size_t>(c.n), static_cast<size_t>(c.k));
  }
  TestTensor x;
  Weights weight;
  TestTensor bias, out;
  QuantizedLinearArgs args;
};

// Products that cancel are off by their terms' roundings: |x| |w| is what the error scales with.
Tolerance tolerance(const Case& c, const Tensors& t) {
  double terms = 0;
  for (const double w : t.weight.values()) terms += w * w;
  double inputs = 0;
  for (const float x : t.x.values()) inputs += double{x} * x;
  Tolerance result = c.out == DType::kFp32 ? kToFp32 : kToBf16;
  if (c.m * c.n > 0) {
    result.least_size =
        std::sqrt(terms / static_cast<double>(c.n) * inputs / static_cast<double>(c.m * c.k));
  }
  return result;
}

void check(const Case& c, Tensors& t) {
  SCOPED_TRACE(fmt::format("{} m {} n {} k {} x {} out {} bias {} gap {} pattern {}",
                           to_string(c.format), c.m, c.n, c.k, to_string(c.x), to_string(c.out),
                           static_cast<int>(c.bias), c.gap, static_cast<int>(c.pattern)));
  quantized_linear(test_stream(), t.args);
  EXPECT_TRUE(matches(fmt::format("quantized {} {}", to_string(c.format), to_string(c.out)),
                      t.out.values(), t.reference(c), tolerance(c, t)));
  EXPECT_TRUE(t.out.guards_intact());
}

void check(const Case& c) {
  Tensors t(c);
  check(c, t);
}

TEST_P(QuantizedLinearTest, SizesAroundTilesAndPanels) {
  for (const BlockFormat format : kFormats) {
    const int64_t block = block_size(format);
    for (const int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 23, 25, 37}) {
      for (const int64_t n : {0, 1, 15, 16, 17, 31, 33, 47, 61, 64, 67, 97}) {
        check({m, n, block, format});
        if (n % 16 == 1) check({m, n, 3 * block, format, DType::kFp32});
      }
    }
  }
}

TEST_P(QuantizedLinearTest, EveryCombinationOfTypes) {
  for (const BlockFormat format : kFormats) {
    for (const DType x : {DType::kFp32, DType::kBf16}) {
      for (const DType out : {DType::kFp32, DType::kBf16}) {
        for (const Bias bias : {Bias::kNone, Bias::kFp32, Bias::kBf16}) {
          for (const int64_t m : {1, 5, 13}) {
            check({m, 37, 768, format, x, out, bias, m == 5 ? 3 : 0});
          }
        }
      }
    }
  }
}

// Many tiles of tokens, long rows, many rows.
TEST_P(QuantizedLinearTest, LargeSizes) {
  check({.m = 257, .n = 33, .k = 576});
  check({.m = 13, .n = 47, .k = 2880, .format = BlockFormat::kQ8_0});
  check({.m = 25, .n = 19, .k = 4352, .format = BlockFormat::kQ6_K});
  check({.m = 1, .n = 17, .k = 14336, .format = BlockFormat::kQ4_K});
  check({.m = 2, .n = 49152, .k = 64, .format = BlockFormat::kQ8_0});
}

TEST_P(QuantizedLinearTest, Patterns) {
  for (const BlockFormat format : kFormats) {
    for (const Pattern pattern : kPatterns) {
      for (const int64_t m : {3, 19}) {
        check({.m = m, .n = 61, .k = 1024, .format = format, .pattern = pattern});
      }
    }
  }
}

TEST_P(QuantizedLinearTest, NoInputsGiveTheBias) {
  for (const BlockFormat format : kFormats) {
    check({.m = 3, .n = 17, .k = 0, .format = format, .bias = Bias::kFp32});
    check({.m = 15, .n = 17, .k = 0, .format = format});
  }
}

// One column of x at a time reads each stored value; each value and scale must land in its place.
TEST_P(QuantizedLinearTest, UnitVectorsReadTheWeights) {
  for (const BlockFormat format : kFormats) {
    const int64_t k = 2 * block_size(format), n = 35;
    for (const DType x : {DType::kFp32, DType::kBf16}) {
      Case c{.m = k, .n = n, .k = k, .format = format, .x = x, .pattern = Pattern::kZero};
      Tensors t(c);
      for (int64_t i = 0; i < k; ++i) t.x.set(i * k + i, 1);
      quantized_linear(test_stream(), t.args);
      const auto want = t.weight.values();
      for (int64_t i = 0; i < k * n; ++i) {
        const auto value = want[static_cast<size_t>(i % n * k + i / n)];
        // d q and m are exact and meet in one addition.
        ASSERT_EQ(t.out.get(i), static_cast<float>(value)) << to_string(format) << " " << i;
      }
    }
  }
}

TEST_P(QuantizedLinearTest, InfinityAndNanInXFillTheirRowAlone) {
  for (const BlockFormat format : kFormats) {
    for (const DType x : {DType::kFp32, DType::kBf16}) {
      for (const float special : {kInf, -kInf, kNan}) {
        for (const int64_t m : {1, 4, 9, 14}) {
          const Case c{.m = m, .n = 21, .k = 512, .format = format, .x = x};
          Tensors clean(c), t(c);
          t.x.set(m / 2 * c.k + 300, special);
          quantized_linear(test_stream(), clean.args);
          quantized_linear(test_stream(), t.args);
          for (int64_t i = 0; i < m * c.n; ++i) {
            if (i / c.n == m / 2) {
              EXPECT_FALSE(std::isfinite(t.out.get(i))) << to_string(format) << " " << i;
            } else {
              EXPECT_EQ(t.out.get(i), clean.out.get(i)) << to_string(format) << " " << i;
            }
          }
        }
      }
    }
  }
}

TEST_P(QuantizedLinearTest, NanAndInfinityInAScaleStayInTheirColumn) {
  for (const BlockFormat format : kFormats) {
    for (const uint16_t special : {0x7c00, 0xfc00, 0x7e01}) {
      for (const int64_t m : {1, 14}) {
        const Case c{.m = m, .n = 21, .k = 512, .format = format};
        Tensors clean(c);
        std::vector<uint8_t> bytes = clean.weight.source;
        const auto at =
            static_cast<size_t>(19 * source_row_bytes(format, c.k)) + fp16_offsets(format)[0];
        bytes[at] = special & 255;
        bytes[at + 1] = special >> 8;
        Tensors t(c, Weights({format, c.n, c.k}, bytes));
        quantized_linear(test_stream(), clean.args);
        quantized_linear(test_stream(), t.args);
        for (int64_t i = 0; i < m * c.n; ++i) {
          if (i % c.n == 19) {
            EXPECT_FALSE(std::isfinite(t.out.get(i))) << to_string(format) << " " << i;
          } else {
            EXPECT_EQ(t.out.get(i), clean.out.get(i)) << to_string(format) << " " << i;
          }
        }
      }
    }
  }
}

TEST_P(QuantizedLinearTest, SubnormalScales) {
  for (const BlockFormat format : kFormats) {
    const Case c{.m = 14, .n = 21, .k = 512, .format = format};
    std::vector<uint8_t> bytes = random_blocks({format, c.n, c.k}, 4);
    const auto step = static_cast<size_t>(block_bytes(format));
    for (size_t block = 0; block < bytes.size(); block += step) {
      for (const size_t at : fp16_offsets(format)) bytes[block + at + 1] &= 0x83;
    }
    Tensors t(c, Weights({format, c.n, c.k}, bytes));
    check(c, t);
  }
}

// A row's bits depend on neither its company nor the threads.
TEST_P(QuantizedLinearTest, SameBitsAloneInABatchAndOnAnyThreads) {
  for (const BlockFormat format : kFormats) {
    for (const DType x : {DType::kFp32, DType::kBf16}) {
      for (const auto& [n, k] : {std::pair{61, 256}, {130, 1280}}) {
        const Case most{.m = 260, .n = n, .k = k, .format = format, .x = x};
        Tensors all(most);
        TestTensor one(DType::kFp32, {1, n});
        std::vector<std::vector<uint8_t>> rows;
        QuantizedLinearArgs args = all.args;
        args.out = one.view();
        for (int64_t row = 0; row < most.m; ++row) {
          args.x = all.args.x.rows(row, row + 1);
          quantized_linear(test_stream(1), args);
          rows.push_back(one.bits());
        }
        for (int64_t m = 2; m <= most.m; m += m < 27 ? 1 : 233) {
          const int threads = 1 + static_cast<int>(m % 3);
          args.x = all.args.x.rows(0, m);
          args.out = all.args.out.rows(0, m);
          quantized_linear(test_stream(threads), args);
          for (int64_t row = 0; row < m; ++row) {
            ASSERT_EQ(all.out.row_bits(row, row + 1), rows[static_cast<size_t>(row)])
                << to_string(format) << " row " << row << " of " << m << ", n " << n << ", k " << k
                << ", " << threads << " threads";
          }
        }
      }
    }
  }
}

TEST(QuantizedLayout, RowsPackedInAnyOrderAndPiecesGiveTheSameBytes) {
  for (const BlockFormat format : kFormats) {
    const QuantizedShape shape{format, 37, 512};
    const Weights whole(shape, 7);
    TestTensor pieces(DType::kUint8, {packed_bytes(shape)});
    auto* to = pieces.view().ptr<uint8_t>();
    const int64_t row_bytes = source_row_bytes(format, shape.in_features);
    for (const auto& [begin, end] : {std::pair{20, 37}, {3, 20}, {0, 1}, {1, 1}, {1, 3}}) {
      pack(shape, whole.source.data() + begin * row_bytes, begin, end, to);
    }
    EXPECT_EQ(pieces.bits(), whole.packed.bits()) << to_string(format);
    EXPECT_TRUE(pieces.guards_intact());
  }
}

TEST(QuantizedLayout, Sizes) {
  EXPECT_EQ(packed_bytes({BlockFormat::kQ8_0, 49152, 576}), 49152 * 576 / 32 * 34);
  EXPECT_EQ(packed_bytes({BlockFormat::kQ4_0, 16, 64}), 16 * 2 * 18);
  EXPECT_EQ(packed_bytes({BlockFormat::kQ4_1, 17, 64}), 32 * 2 * 20);
  EXPECT_EQ(packed_bytes({BlockFormat::kQ4_K, 16, 256}), 16 * 148);
  EXPECT_EQ(packed_bytes({BlockFormat::kQ6_K, 1, 512}), 16 * 2 * 210);
  EXPECT_EQ(packed_bytes({BlockFormat::kQ6_K, 0, 512}), 0);
  EXPECT_THROW(packed_bytes({BlockFormat::kQ4_K, 16, 576}), CheckError);
}

TEST(QuantizedLayout, HalfToFloatIsExact) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const uint8_t bytes[2] = {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
    const float got = half_to_float(static_cast<uint16_t>(bits));
    const double want = fp16_ref(bytes);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(got, want) << bits;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << bits;
    }
  }
}

TEST(QuantizedEmbedding, RowsAreTheFilesValues) {
  for (const BlockFormat format : kFormats) {
    for (const DType dtype : {DType::kFp32, DType::kBf16}) {
      const int64_t hidden = 512;
      const Weights table({format, 37, hidden}, 5);
      const auto values = table.values();
      TestTensor ids = int_tensor({0, 36, 17, 17, 15, 16});
      TestTensor out(dtype, {6, hidden}, 3);
      quantized_embedding(test_stream(), {ids.view(), table.packed.view(), format, 37, out.view()});
      for (int64_t i = 0; i < out.size(); ++i) {
        const auto at = static_cast<size_t>(ids.get_int(i / hidden) * hidden + i % hidden);
        const auto want = static_cast<float>(values[at]);
        ASSERT_EQ(out.get(i), dtype == DType::kBf16 ? to_float(to_bf16(want)) : want)
            << to_string(format) << " " << i;
      }
      EXPECT_TRUE(out.guards_intact());
    }
  }
}

TEST(QuantizedEmbedding, RefusesIdsOutsideTheVocabulary) {
  const Weights table({BlockFormat::kQ8_0, 37, 64}, 5);
  TestTensor out(DType::kFp32, {1, 64});
  for (const int32_t id : {-1, 37}) {
    TestTensor ids = int_tensor({id});
    EXPECT_THROW(quantized_embedding(test_stream(), {ids.view(), table.packed.view(),
                                                     BlockFormat::kQ8_0, 37, out.view()}),
                 CheckError);
  }
}

TEST(QuantizedLinear, RefusesWeightsOfAnotherSize) {
  Tensors t({.m = 1, .n = 16, .k = 64});
  t.args.format = BlockFormat::kQ4_0;
  EXPECT_THROW(quantized_linear(test_stream(), t.args), CheckError);
}

}  // namespace
}  // namespace briar

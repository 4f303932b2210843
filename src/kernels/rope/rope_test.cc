#include "kernels/rope/rope.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "kernels/rope/rope_ref.h"
#include "kernels/rope/yarn.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(RopeTest);

RopeParams gpt_oss(bool truncate, int dim = 64) {
  RopeParams p{.rotary_dim = dim,
               .theta = 150000,
               .factor = 32,
               .beta_fast = 32,
               .beta_slow = 1,
               .original_max_position = 4096,
               .truncate = truncate};
  p.attention_factor = yarn_attention_factor(32);
  return p;
}

std::vector<float> inv_frequencies(const RopeParams& p) {
  const std::vector<double> exact = rope_inv_frequencies(p);
  return {exact.begin(), exact.end()};
}

TEST(YarnTest, FrequenciesOfGptOss) {
  for (const bool truncate : {false, true}) {
    for (const int dim : {32, 64, 80, 128}) {
      const auto got = rope_inv_frequencies(gpt_oss(truncate, dim));
      const auto want = yarn_frequencies_ref({dim, 150000, 32, 32, 1, 4096, truncate});
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i] / want[i], 1, 1e-13) << dim << " " << i;
    }
  }
}

// Worked by hand: with head_dim 64 the ramp runs from pair 8.0927 to 17.3980.
TEST(YarnTest, EndsOfTheRamp) {
  const auto exact = rope_inv_frequencies(gpt_oss(false));
  const auto rounded = rope_inv_frequencies(gpt_oss(true));
  const auto plain = [](int i) { return std::pow(150000.0, -i / 32.0); };
  for (int i = 0; i <= 8; ++i) EXPECT_NEAR(exact[static_cast<size_t>(i)] / plain(i), 1, 1e-13) << i;
  EXPECT_LT(exact[9], plain(9) * 0.95);
  EXPECT_GT(exact[17], plain(17) / 32 * 1.5);
  for (int i = 18; i < 32; ++i)
    EXPECT_NEAR(exact[static_cast<size_t>(i)] * 32 / plain(i), 1, 1e-13) << i;
  EXPECT_NEAR(rounded[9] / plain(9), 1 - 0.1 * (31.0 / 32), 1e-13);  // ramp from 8 to 18
}

TEST(YarnTest, PlainRope) {
  const auto got = rope_inv_frequencies({.rotary_dim = 128, .theta = 10000});
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(got[i] * std::pow(10000.0, static_cast<double>(i) / 64), 1, 1e-13) << i;
  }
  EXPECT_EQ(yarn_attention_factor(1), 1);
  EXPECT_NEAR(yarn_attention_factor(32), 1.3465735902799727, 1e-15);
}

const std::vector<int32_t> kPositions = {0,      1,      2,      3,      7,     63,   64,    127,
                                         128,    4095,   4096,   9973,   8191,  8192, 32767, 65536,
                                         100003, 131069, 131070, 131071, 12345, 77777};

TEST_P(RopeTest, TableIsExactForTheFp32Angle) {
  for (const bool truncate : {false, true}) {
    for (const int dim : {2, 32, 64, 80, 128}) {
      const RopeParams p = gpt_oss(truncate, dim);
      const auto frequencies = inv_frequencies(p);
      const TestTensor positions = int_tensor(kPositions);
      TestTensor table(DType::kFp32, {positions.size(), dim});
      rope_table(test_stream(), {positions.view(), frequencies, p.attention_factor, table.view()});
      std::vector<double> ref;
      for (const int32_t position : kPositions) {
        for (int i = 0; i < dim; ++i) {
          const float angle =
              static_cast<float>(position) * frequencies[static_cast<size_t>(i % (dim / 2))];
          ref.push_back((i < dim / 2 ? std::cos(double{angle}) : std::sin(double{angle})) *
                        p.attention_factor);
        }
      }
      EXPECT_TRUE(matches("rope_table", table.values(), ref, {1e-7, 0, 5e-8})) << dim;
      EXPECT_TRUE(table.guards_intact());
    }
  }
}

// The angle that the table's cosine and sine stand for, against position * frequency in fp64.
TEST_P(RopeTest, AngleIsWithinTwoRoundingsOfTheExactOne) {
  const RopeParams p = gpt_oss(false);
  const auto frequencies = inv_frequencies(p);
  const auto exact = yarn_frequencies_ref({64, 150000, 32, 32, 1, 4096, false});
  const TestTensor positions = int_tensor(kPositions);
  TestTensor table(DType::kFp32, {positions.size(), 64});
  rope_table(test_stream(), {positions.view(), frequencies, 1.0, table.view()});
  for (size_t row = 0; row < kPositions.size(); ++row) {
    for (size_t i = 0; i < 32; ++i) {
      const double angle = kPositions[row] * exact[i];
      const double c = table.get(static_cast<int64_t>(row * 64 + i));
      const double s = table.get(static_cast<int64_t>(row * 64 + 32 + i));
      const double error = std::atan2(s * std::cos(angle) - c * std::sin(angle),
                                      c * std::cos(angle) + s * std::sin(angle));
      EXPECT_LE(std::fabs(error), angle * 0x1p-22 + 1e-7) << kPositions[row] << " pair " << i;
    }
  }
}

TEST_P(RopeTest, TableSizes) {
  const auto frequencies = inv_frequencies(gpt_oss(true));
  std::vector<int32_t> all;
  for (int32_t i = 0; i < 1031; ++i) all.push_back(i * 127 % 131072);
  const TestTensor positions = int_tensor(all);
  TestTensor first(DType::kFp32, {1031, 64});
  rope_table(test_stream(1), {positions.view(), frequencies, 1.0, first.view()});
  for (const int64_t n : {0, 1, 2, 500, 1031}) {
    TestTensor table(DType::kFp32, {n, 64});
    rope_table(test_stream(3), {positions.view().rows(0, n), frequencies, 1.0, table.view()});
    EXPECT_EQ(table.bits(), first.row_bits(0, n));
    EXPECT_TRUE(table.guards_intact());
  }
}

struct Heads {
  int64_t num_tokens = 5, q = 8, kv = 1, head_dim = 64, page_size = 16;
  DType q_dtype = DType::kBf16, kv_dtype = DType::kBf16;
  Pattern pattern = Pattern::kNormal;
  std::optional<DType> norm_dtype = {};  // q and k are normalised, with weights of this type
};

constexpr Tolerance kFp32{1.2e-7, 1.2e-7, 6e-8};
// The norm adds the roundings of its sum, root and two products.
constexpr Tolerance kNormedFp32{3e-7, 2.4e-7, 1e-7};
constexpr Tolerance kBf16{0x1p-8, 1.2e-7, 2e-3};
constexpr int64_t kPages = 9;
constexpr float kEps = 1e-3f;

struct KvWrite {
  explicit KvWrite(const Heads& h)
      : qkv(DType::kFp32, {h.num_tokens, (h.q + 2 * h.kv) * h.head_dim}),
        cos_sin(DType::kFp32, {h.num_tokens, h.head_dim}),
        slots(DType::kInt32, {h.num_tokens}),
        q(h.q_dtype, {h.num_tokens, h.q, h.head_dim}),
        k_cache(h.kv_dtype, {kPages, h.page_size, h.kv, h.head_dim}),
        v_cache(h.kv_dtype, {kPages, h.page_size, h.kv, h.head_dim}),
        has_norms(h.norm_dtype.has_value()),
        q_norm(h.norm_dtype.value_or(DType::kFp32), {h.head_dim}),
        k_norm(h.norm_dtype.value_or(DType::kFp32), {h.head_dim}) {
    fill_random(q_norm, 13);
    fill_random(k_norm, 14);
    fill_random(qkv, 1, 1, h.pattern);
    const std::vector<double> exact =
        rope_inv_frequencies(gpt_oss(true, static_cast<int>(h.head_dim)));
    for (int64_t t = 0; t < h.num_tokens; ++t) {
      slots.set(t, static_cast<double>((t * 5 + 3) % (kPages * h.page_size)));
      for (int64_t i = 0; i < h.head_dim / 2; ++i) {
        const double angle = static_cast<double>(100 + t) * exact[static_cast<size_t>(i)];
        cos_sin.set(t * h.head_dim + i, 1.3465 * std::cos(angle));
        cos_sin.set(t * h.head_dim + h.head_dim / 2 + i, 1.3465 * std::sin(angle));
      }
    }
    // A cache that was in use: what the call must leave alone.
    fill_random(k_cache, 11);
    fill_random(v_cache, 12);
  }
  void run(int threads = 2) {
    rope_kv_write(test_stream(threads),
                  {qkv.view(), cos_sin.view(), slots.view(), q.view(), k_cache.view(),
                   v_cache.view(), has_norms ? q_norm.view() : TensorView(),
                   has_norms ? k_norm.view() : TensorView(), has_norms ? kEps : 0.f});
  }
  TestTensor qkv, cos_sin, slots, q, k_cache, v_cache;
  bool has_norms;
  TestTensor q_norm, k_norm;
};

Tolerance tolerance(DType dtype, bool has_norms) {
  if (dtype == DType::kBf16) return kBf16;
  return has_norms ? kNormedFp32 : kFp32;
}

void check(const Heads& h, KvWrite& t) {
  SCOPED_TRACE(fmt::format("{} tokens, heads {}/{} of {}, q {} kv {}, page {}", h.num_tokens, h.q,
                           h.kv, h.head_dim, to_string(h.q_dtype), to_string(h.kv_dtype),
                           h.page_size));
  const std::vector<float> before_k = t.k_cache.values(), before_v = t.v_cache.values();
  std::vector<double> q, k(before_k.begin(), before_k.end()), v(before_v.begin(), before_v.end());
  const std::vector<float> qkv = t.qkv.values(), cos_sin = t.cos_sin.values();
  const auto dim = static_cast<size_t>(h.head_dim);
  for (int64_t token = 0; token < h.num_tokens; ++token) {
    for (int64_t head = 0; head < h.q + 2 * h.kv; ++head) {
      const auto in =
          std::span(qkv).subspan(static_cast<size_t>(token * (h.q + 2 * h.kv) + head) * dim, dim);
      std::vector<float> head_in(in.begin(), in.end());
      if (t.has_norms && head < h.q + h.kv) {
        head_in = norm_head_ref(in, (head < h.q ? t.q_norm : t.k_norm).values(), kEps);
      }
      const auto rotated =
          rotate_ref(head_in, std::span(cos_sin).subspan(static_cast<size_t>(token) * dim, dim));
      if (head < h.q) {
        q.insert(q.end(), rotated.begin(), rotated.end());
        continue;
      }
      const auto at =
          static_cast<size_t>(t.slots.get_int(token) * h.kv + (head - h.q) % h.kv) * dim;
      for (size_t i = 0; i < dim; ++i) {
        if (head < h.q + h.kv) {
          k[at + i] = rotated[i];
        } else {
          v[at + i] = h.kv_dtype == DType::kFp32 ? in[i] : to_float(to_bf16(in[i]));
        }
      }
    }
  }
  t.run();
  EXPECT_TRUE(matches(h.q_dtype == DType::kFp32 ? "rope q fp32" : "rope q bf16", t.q.values(), q,
                      tolerance(h.q_dtype, t.has_norms)));
  EXPECT_TRUE(matches("rope k", t.k_cache.values(), k, tolerance(h.kv_dtype, t.has_norms)));
  EXPECT_TRUE(matches("rope v", t.v_cache.values(), v, kExact));
  EXPECT_TRUE(t.q.guards_intact() && t.k_cache.guards_intact() && t.v_cache.guards_intact());
}

void check(const Heads& h) {
  KvWrite t(h);
  check(h, t);
}

TEST_P(RopeTest, KvWriteShapesAndTypes) {
  for (const int64_t dim : {2, 30, 32, 62, 64, 80, 128}) {
    for (const auto& [q, kv] : {std::pair{1, 1}, {3, 1}, {8, 8}, {64, 8}}) {
      for (const DType q_dtype : {DType::kFp32, DType::kBf16}) {
        for (const DType kv_dtype : {DType::kFp32, DType::kBf16}) {
          check({.q = q, .kv = kv, .head_dim = dim, .q_dtype = q_dtype, .kv_dtype = kv_dtype});
        }
      }
    }
  }
}

TEST_P(RopeTest, KvWriteNormalisesHeads) {
  for (const int64_t dim : {2, 30, 32, 62, 64, 80, 128, 256}) {
    for (const DType norm_dtype : {DType::kFp32, DType::kBf16}) {
      for (const DType dtype : {DType::kFp32, DType::kBf16}) {
        check({.q = 4,
               .kv = 2,
               .head_dim = dim,
               .q_dtype = dtype,
               .kv_dtype = dtype,
               .norm_dtype = norm_dtype});
      }
    }
  }
}

TEST_P(RopeTest, KvWriteCountsPagesAndPatterns) {
  for (const int64_t num_tokens : {0, 1, 8, 9}) {
    for (const int64_t page_size : {1, 16, 64, 100}) {
      for (const Pattern pattern : kPatterns) {
        check({.num_tokens = num_tokens, .page_size = page_size, .pattern = pattern});
      }
    }
  }
}

TEST_P(RopeTest, KvWritePassesInfinityAndNan) {
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Heads h{.q = 3};
    KvWrite t(h);
    for (int64_t head = 0; head < 5; ++head) t.qkv.set((5 + head) * 64 + 13 + head, special);
    check(h, t);
  }
}

TEST_P(RopeTest, KvWriteSameBitsAloneInABatchAndOnAnyThreads) {
  const Heads h{.num_tokens = 29, .q_dtype = DType::kFp32, .kv_dtype = DType::kFp32};
  KvWrite first(h);
  first.run(1);
  for (const int threads : {2, 3}) {
    KvWrite t(h);
    t.run(threads);
    EXPECT_EQ(t.q.bits(), first.q.bits());
    EXPECT_EQ(t.k_cache.bits(), first.k_cache.bits());
  }
  KvWrite one({.num_tokens = 1, .q_dtype = DType::kFp32, .kv_dtype = DType::kFp32});
  one.qkv.copy_row(0, first.qkv, 17);
  one.cos_sin.copy_row(0, first.cos_sin, 17);
  one.run();
  EXPECT_EQ(one.q.bits(), first.q.row_bits(17 * 8, 18 * 8));
}

}  // namespace
}  // namespace briar

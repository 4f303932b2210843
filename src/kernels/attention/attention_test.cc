#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/test/attention_case.h"
#include "kernels/test/isa_test.h"

namespace briar::attention_test {
namespace {

BRIAR_TEST_EVERY_ISA(AttentionTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr DType kDTypes[] = {DType::kFp32, DType::kBf16};

// Prefill from nothing, decode, a chunk after a prefix, a single token, no tokens at all.
const std::vector<Sequence> kMixed = {{130, 130}, {1, 1},   {200, 1}, {150, 20},
                                      {65, 0},    {64, 64}, {66, 2}};

TEST_P(AttentionTest, HeadsAndDimensions) {
  for (const int64_t dim : {32, 64, 80, 128}) {
    for (const int64_t group : {1, 3, 8}) {
      for (const int64_t kv_heads : {1, 2}) {
        check({.sequences = kMixed,
               .q_heads = group * kv_heads,
               .kv_heads = kv_heads,
               .dim = dim,
               .sink = 0.5f});
        check({.sequences = {{70, 70}, {90, 1}},
               .q_heads = group * kv_heads,
               .kv_heads = kv_heads,
               .dim = dim,
               .window = 63,
               .q_dtype = DType::kFp32,
               .kv_dtype = DType::kFp32,
               .gap = 5});
      }
    }
  }
}

TEST_P(AttentionTest, WindowsAndSinks) {
  for (const int window : {0, 1, 63, 64, 65, 128, 129}) {
    for (const std::optional<float> sink : {std::optional<float>(), {-10.f}, {0.f}, {10.f}}) {
      check({.sequences = kMixed, .window = window, .sink = sink});
    }
  }
}

TEST_P(AttentionTest, EveryCombinationOfTypes) {
  for (const DType q : kDTypes) {
    for (const DType kv : kDTypes) {
      check({.sequences = kMixed, .q_dtype = q, .kv_dtype = kv});
      check({.sequences = kMixed,
             .window = 100,
             .sink = 1.f,
             .q_dtype = q,
             .kv_dtype = kv,
             .gap = 3});
    }
  }
}

TEST_P(AttentionTest, NothingToDo) {
  check({.sequences = {{5, 0}}});
  check({.sequences = {{0, 0}, {3, 0}}});
}

TEST_P(AttentionTest, LongContexts) {
  for (const int window : {0, 128}) {
    check({.sequences = {{5000, 1}}, .window = window, .sink = 0.f});
    check({.sequences = {{4999, 3}, {1031, 1}}, .window = window, .q_dtype = DType::kFp32});
    check({.sequences = {{777, 777}}, .q_heads = 2, .window = window, .page_size = 64});
  }
}

// Zero and equal values give plain means of v. Outliers make scores of thousands, whose fp32
// rounding shows in the weights; fp32 inputs, so that it is not hidden by rounding to bf16.
TEST_P(AttentionTest, Patterns) {
  for (const DType dtype : kDTypes) {
    for (const Pattern pattern : {Pattern::kZero, Pattern::kEqual}) {
      check({.sequences = kMixed, .sink = 0.f, .q_dtype = dtype, .pattern = pattern});
      check({.sequences = kMixed, .window = 128, .q_dtype = dtype, .pattern = pattern});
    }
    const Case outliers{.sequences = kMixed, .q_dtype = dtype, .pattern = Pattern::kOutliers};
    check(outliers, Problem(outliers), "attention outliers",
          attention_tolerance(
              dtype == DType::kFp32 ? Tolerance{5e-5, 5e-5, 5e-7} : Tolerance{0x1p-8, 5e-5, 1e-3},
              dtype));
  }
}

// How the work is cut does not show in the result, whatever the page size and the threads.
TEST_P(AttentionTest, SameBitsForAnyChunkPageAndThreads) {
  BRIAR_CPU_ONLY("tiles and splits depend on the call");
  for (const int window : {0, 63, 128}) {
    for (const int64_t dim : {64, 80}) {
      Case c{.sequences = {{215, 200}, {100, 100}},
             .q_heads = 6,
             .kv_heads = 2,
             .dim = dim,
             .window = window,
             .sink = 0.5f,
             .q_dtype = DType::kFp32,
             .threads = 1};
      const Problem p(c);
      const auto want = run(c, p).bits();
      for (const int64_t page_size : {1, 16, 64, 100}) {
        for (const int64_t chunk : {0, 1, 7, 64}) {
          c.page_size = page_size;
          c.chunk = chunk;
          c.threads = 1 + static_cast<int>((page_size + chunk) % 3);
          EXPECT_EQ(run(c, p).bits(), want)
              << fmt::format("page {} chunk {} window {} dim {} threads {}", page_size, chunk,
                             window, dim, c.threads);
        }
      }
    }
  }
}

TEST_P(AttentionTest, DecodeAtEveryContextAloneAndInABatch) {
  BRIAR_CPU_ONLY("splits depend on the batch");
  for (const int window : {0, 128}) {
    Case all{
        .sequences = {}, .q_heads = 3, .window = window, .sink = -1.f, .q_dtype = DType::kFp32};
    for (int64_t context = 1; context <= 300; ++context) all.sequences.push_back({context, 1});
    const Problem p(all);
    check(all, p, "attention fp32", default_tolerance(DType::kFp32));
    const TestTensor batch = run(all, p);
    int64_t key = 0;
    for (int64_t context = 1; context <= 300; key += context++) {
      if (context % 7 != 0 && context % 64 > 1 && context % 64 < 63) continue;
      Case alone = all;
      alone.sequences = {{context, 1}};
      alone.threads = 1 + static_cast<int>(context % 3);
      Problem one(alone);
      for (int64_t h = 0; h < 3; ++h) one.q.copy_row(h, p.q, (context - 1) * 3 + h);
      for (int64_t j = 0; j < context; ++j) {
        one.k.copy_row(j, p.k, key + j);
        one.v.copy_row(j, p.v, key + j);
      }
      EXPECT_EQ(run(alone, one).bits(), batch.row_bits((context - 1) * 3, context * 3)) << context;
    }
  }
}

// A long decode may be split over threads; its bits may not depend on that.
TEST_P(AttentionTest, LongDecodeSameBitsOnAnyThreads) {
  Case c{.sequences = {{5000, 1}}, .sink = 0.f, .q_dtype = DType::kFp32, .threads = 1};
  const Problem p(c);
  const auto want = run(c, p).bits();
  for (const int threads : {1, 2, 3}) {
    c.threads = threads;
    EXPECT_EQ(run(c, p).bits(), want) << threads;
  }
}

// A NaN or infinity in v or k reaches the queries that see it and no earlier one, although they
// share its block of keys.
TEST_P(AttentionTest, NanAndInfinityReachOnlyWhoSeesThem) {
  BRIAR_CPU_ONLY("a tile multiplies hidden values by a weight of zero");
  for (const int window : {0, 30}) {
    for (const int64_t position : {0, 40, 63, 64, 100}) {
      const Case c{
          .sequences = {{150, 150}}, .q_heads = 4, .kv_heads = 2, .window = window, .sink = 0.f};
      for (const float special : {kNan, kInf, -kInf}) {
        Problem in_v(c);
        in_v.v.set((position * 2 + 1) * 64 + 10, special);
        check(c, in_v, "attention special v", default_tolerance(c.q_dtype));
      }
      Problem in_k(c);
      in_k.k.set((position * 2 + 1) * 64 + 10, kNan);
      check(c, in_k, "attention special k", default_tolerance(c.q_dtype));
    }
  }
}

// Keys of a whole block with a weight of zero: their scores are minus infinity.
TEST_P(AttentionTest, MinusInfinityScoresWeighNothing) {
  for (const int64_t num_keys : {1, 64, 70, 128}) {
    const Case c{.sequences = {{200, 10}}, .q_heads = 2};
    Problem p(c);
    for (int64_t i = 0; i < 20; ++i) p.q.set(i * 64, 1);
    for (int64_t j = 0; j < num_keys; ++j) p.k.set(j * 64, -kInf);
    check(c, p, "attention masked scores", default_tolerance(c.q_dtype));
  }
}

// Scores far from zero on either side must neither overflow nor vanish.
TEST_P(AttentionTest, FarScores) {
  for (const double offset : {-300.0, 300.0}) {
    for (const double sink_offset : {-20.0, 0.0, 5.0}) {
      const auto sink = static_cast<float>(offset + sink_offset);
      const Case c{.sequences = {{100, 3}},
                   .q_heads = 2,
                   .sink = sink,
                   .q_dtype = DType::kFp32,
                   .kv_dtype = DType::kFp32};
      Problem p(c);
      for (int64_t i = 0; i < 6; ++i) p.q.set(i * 64, offset);
      for (int64_t j = 0; j < 100; ++j) p.k.set(j * 64, 8);
      check(c, p, "attention far scores", {1e-4, 1e-4, 4e-5});
    }
  }
}

// sgl-project/sglang#11634: window and sinks in one kernel.
TEST(Users, A02_WindowAndSinksInPrefillChunksAndDecode) {
  for (const CpuIsa isa : testable_isas()) {
    const ScopedCpuIsa scoped(isa);
    Case c{.sequences = {{400, 400}, {129, 129}}, .q_heads = 3, .window = 128, .sink = 0.f};
    Problem p(c);
    for (int64_t h = 0; h < 3; ++h) p.sinks.set(h, std::array{-10, 0, 10}[static_cast<size_t>(h)]);
    const auto ref = p.reference(c);
    for (const int64_t chunk : {0, 100, 1}) {  // whole prompts, chunked prefill, decode
      c.chunk = chunk;
      EXPECT_TRUE(matches("A02", run(c, p).values(), ref, default_tolerance(DType::kBf16)))
          << to_string(isa) << " chunk " << chunk;
    }
  }
}

// sgl-project/sglang#38142: a row whose first key blocks are wholly masked was NaN.
TEST(Users, A08_WindowThatMissesTheFirstBlocks) {
  for (const CpuIsa isa : testable_isas()) {
    const ScopedCpuIsa scoped(isa);
    for (const std::optional<float> sink : {std::optional<float>(), {0.f}, {-10.f}}) {
      for (const int window : {1, 20, 64, 128}) {
        check({.sequences = {{300, 300}, {300, 100}, {300, 1}, {257, 2}},
               .window = window,
               .sink = sink});
      }
    }
  }
}

}  // namespace
}  // namespace briar::attention_test

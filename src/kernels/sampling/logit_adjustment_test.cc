#include "kernels/sampling/logit_adjustment.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "kernels/sampling/logit_adjustment_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

#ifdef BRIAR_CUDA
#include "kernels/sampling/logit_adjustment_sm90.h"
#endif

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(LogitAdjustmentTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A case as the kernel takes it; owns what the spans point to.
struct Packed {
  explicit Packed(const LogitAdjustmentCase& c, int64_t vocab_size) {
    std::map<int32_t, int32_t> counts;
    for (const int32_t id : c.prompt) counts[id] += 0;
    for (const int32_t id : c.answer) counts[id] += 1;
    for (const auto& [id, count] : counts) ids.push_back(id), occurrences.push_back(count);
    for (const auto& [id, bias] : c.bias) {
      bias_ids.push_back(id);
      biases.push_back(static_cast<float>(bias));
    }
    allowed.assign(c.allowed.begin(), c.allowed.end());
    banned.assign(c.banned.begin(), c.banned.end());
    if (!c.masked.empty()) mask.assign(static_cast<size_t>(vocab_size + 31) / 32, ~0u);
    for (const int32_t id : c.masked) mask[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
    adjustment = {.repetition_penalty = static_cast<float>(c.repetition_penalty),
                  .frequency_penalty = static_cast<float>(c.frequency_penalty),
                  .presence_penalty = static_cast<float>(c.presence_penalty),
                  .history_ids = ids,
                  .history_counts = occurrences,
                  .bias_ids = bias_ids,
                  .biases = biases,
                  .allowed_ids = allowed,
                  .banned_ids = banned,
                  .mask = mask};
  }
  Packed(const Packed&) = delete;

  std::vector<int32_t> ids, occurrences, bias_ids, allowed, banned;
  std::vector<float> biases;
  std::vector<uint32_t> mask;
  LogitAdjustment adjustment;
};

struct Result {
  std::vector<float> out;
  std::vector<int32_t> is_empty;
};

Result adjust(const TestTensor& logits, int64_t vocab_size,
              const std::vector<const LogitAdjustment*>& rows, int threads = 2) {
  TestTensor out(DType::kFp32, {logits.num_rows(), logits.view().size(1)});
  const TestTensor empty(DType::kUint8, {logits.num_rows()});
  adjust_logits(test_stream(threads), {.logits = logits.view(),
                                       .vocab_size = vocab_size,
                                       .rows = rows.data(),
                                       .out = out.view(),
                                       .is_empty = static_cast<bool*>(empty.view().data())});
  EXPECT_TRUE(out.guards_intact() && empty.guards_intact());
  return {out.values(), empty.ints()};
}

TestTensor random_logits(int64_t rows, int64_t vocab, int seed) {
  TestTensor logits(DType::kFp32, {rows, vocab}, seed % 2 * 3);
  fill_random(logits, seed, 5);
  return logits;
}

void expect_row(const LogitAdjustmentCase& c, int64_t vocab, int seed) {
  const TestTensor logits = random_logits(1, vocab, seed);
  const Packed packed(c, vocab);
  const Result got = adjust(logits, vocab, {&packed.adjustment});
  const std::vector<double> ref = adjust_logits_ref(logits.values(), c);
  const Tolerance tolerance{3e-7, 1e-6, 2e-7, 1};
  EXPECT_TRUE(matches("adjust_logits", got.out, ref, tolerance));
}

TEST_P(LogitAdjustmentTest, EachPartAndAllTogether) {
  const LogitAdjustmentCase all{.repetition_penalty = 1.3,
                                .frequency_penalty = 0.25,
                                .presence_penalty = 0.5,
                                .prompt = {1, 2, 2, 9},
                                .answer = {2, 3, 3, 3},
                                .bias = {{3, -4.5}, {4, 100}, {0, 0.125}},
                                .allowed = {0, 2, 3, 4, 5, 9},
                                .banned = {5},
                                .masked = {9, 1}};
  for (const int seed : {1, 2, 3}) {
    expect_row(all, 10, seed);
    expect_row(all, 33, seed);
    expect_row({.repetition_penalty = 0.5, .prompt = {0}, .answer = {1}}, 2, seed);
    expect_row({.frequency_penalty = -2, .answer = {0, 0, 0}}, 1, seed);
    expect_row({.presence_penalty = 2, .prompt = {4}, .answer = {3, 3}}, 64, seed);
    expect_row({.bias = {{31, -100}, {32, 100}}}, 65, seed);
    expect_row({.banned = {0, 64}}, 65, seed);
    expect_row({.masked = {0, 31, 32, 64}}, 65, seed);
  }
}

// users.md S05.
TEST_P(LogitAdjustmentTest, S05_AllowedIdsKeepTheirBitsAndAllOthersGo) {
  constexpr int64_t kVocab = 201088;
  std::mt19937 random(5);
  std::vector<std::unique_ptr<Packed>> packed;
  for (int i = 0; i < 1000; ++i) {
    LogitAdjustmentCase c;
    const size_t count = i < 2 ? (i == 0 ? 1 : 512) : 1 + random() % 512;
    while (c.allowed.size() < count) {
      c.allowed.insert(static_cast<int32_t>(random() % kVocab));
    }
    packed.push_back(std::make_unique<Packed>(c, kVocab));
  }
  const TestTensor logits = random_logits(10, kVocab, 7);
  const std::vector<float> in = logits.values();
  for (size_t block = 0; block < 100; ++block) {
    std::vector<const LogitAdjustment*> rows;
    for (size_t i = 0; i < 10; ++i) rows.push_back(&packed[block * 10 + i]->adjustment);
    const Result got = adjust(logits, kVocab, rows);
    std::vector<float> expected(in.size(), -kInf);
    for (size_t i = 0; i < 10; ++i) {
      for (const int32_t id : packed[block * 10 + i]->allowed) {
        const size_t at = i * kVocab + static_cast<size_t>(id);
        expected[at] = in[at];
      }
    }
    ASSERT_EQ(std::memcmp(got.out.data(), expected.data(), expected.size() * sizeof(float)), 0);
  }
}

TEST_P(LogitAdjustmentTest, RowsWithoutAdjustmentAreCopies) {
  const TestTensor logits = random_logits(3, 100, 9);
  const Packed packed({.bias = {{5, 1}}}, 100);
  const Result got = adjust(logits, 100, {nullptr, &packed.adjustment, nullptr}, 3);
  std::vector<float> expected = logits.values();
  expected[105] += 1;
  EXPECT_EQ(got.out, expected);
}

TEST_P(LogitAdjustmentTest, SaysWhenNothingIsLeft) {
  const TestTensor logits = random_logits(4, 3, 2);
  const Packed nothing({.masked = {0, 1, 2}}, 3), disjoint({.allowed = {1}, .masked = {1}}, 3),
      one({.allowed = {1}, .banned = {0}}, 3), banned({.banned = {0, 1, 2}}, 3);
  const Result got = adjust(
      logits, 3, {&nothing.adjustment, &disjoint.adjustment, &one.adjustment, &banned.adjustment});
  EXPECT_EQ(got.is_empty, (std::vector<int32_t>{1, 1, 0, 1}));
}

TEST_P(LogitAdjustmentTest, ColumnsBeyondTheVocabularyAreNotTouchedAndNansStay) {
  TestTensor logits(DType::kFp32, {1, 40});
  fill_random(logits, 3, 1);
  logits.set(7, kNan);
  const Packed packed({.banned = {3}}, 33);
  const Result got = adjust(logits, 33, {&packed.adjustment});
  EXPECT_TRUE(std::isnan(got.out[7]));
  EXPECT_EQ(got.out[3], -kInf);
  EXPECT_TRUE(std::isnan(got.out[33])) << "a guard byte pattern, never written";
  EXPECT_EQ(got.is_empty[0], 0);
}

TEST_P(LogitAdjustmentTest, IdsOutsideTheVocabularyAreOurBug) {
  const TestTensor logits = random_logits(1, 10, 4);
  for (const int32_t id : {-1, 10, 999999999}) {
    const std::vector<int32_t> ids{id};
    const LogitAdjustment bad{.banned_ids = ids};
    EXPECT_THROW(adjust(logits, 10, {&bad}), CheckError) << id;
  }
}

#ifdef BRIAR_CUDA
TEST(PackAdjustments, RowsThatDoNotFitAreLeftForTheNextCopy) {
  constexpr int64_t kVocab = 70;
  const TestTensor logits = random_logits(4, kVocab, 1);
  const Packed mask({.allowed = {1, 40, 69}, .banned = {40}, .masked = {69}}, kVocab),
      bias({.bias = {{5, 1.5}}}, kVocab);
  const std::vector<const LogitAdjustment*> rows = {&mask.adjustment, nullptr, &bias.adjustment,
                                                    &mask.adjustment};
  const LogitAdjustmentArgs args{
      .logits = logits.view(), .vocab_size = kVocab, .rows = rows.data(), .out = logits.view()};
  const auto all = sm90::pack_adjustments(args, 0, 1 << 20);
  ASSERT_EQ(all.rows.size(), 4u);
  ASSERT_TRUE(all.rows[0].has_mask);
  const auto at = static_cast<size_t>(all.rows[0].mask);
  EXPECT_EQ(std::vector<uint32_t>(all.words.begin() + at, all.words.begin() + at + 3),
            (std::vector<uint32_t>{2, 0, 0}));
  EXPECT_FALSE(all.rows[1].has_mask);
  EXPECT_EQ(all.words[static_cast<size_t>(all.rows[2].bias_ids)], 5u);

  const int64_t two_rows = 2 * sizeof(sm90::PackedAdjustment) + 6 * sizeof(uint32_t);
  const auto first = sm90::pack_adjustments(args, 0, two_rows);
  ASSERT_EQ(first.rows.size(), 2u);
  const auto rest = sm90::pack_adjustments(args, 2, 1 << 20);
  ASSERT_EQ(rest.rows.size(), 2u);
  EXPECT_EQ(rest.rows[0].row, 2);
  EXPECT_EQ(rest.rows[1].row, 3);
  EXPECT_THROW(sm90::pack_adjustments(args, 0, 8), CheckError);
}
#endif

}  // namespace
}  // namespace briar

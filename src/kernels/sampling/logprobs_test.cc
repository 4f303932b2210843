#include "kernels/sampling/logprobs.h"

#include <limits>
#include <numeric>

#include "kernels/sampling/logprobs_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(LogprobsTest);

// A logprob is a difference of numbers of at least 1.
constexpr Tolerance kTolerance{5e-7, 7e-8, 5e-8, 1};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Result {
  Result(const TestTensor& logits, int64_t vocab_size, const std::vector<int32_t>& chosen,
         int64_t num_top, int threads = 2)
      : chosen_logprobs(DType::kFp32, {logits.num_rows()}),
        top_ids(DType::kInt32, {logits.num_rows(), num_top}),
        top_logprobs(DType::kFp32, {logits.num_rows(), num_top}) {
    const TestTensor ids = int_tensor(chosen);
    LogprobsArgs args{logits.view(), vocab_size, ids.view(), chosen_logprobs.view(), {}, {}};
    if (num_top > 0) args.top_ids = top_ids.view(), args.top_logprobs = top_logprobs.view();
    logprobs(test_stream(threads), args);
    EXPECT_TRUE(chosen_logprobs.guards_intact() && top_ids.guards_intact() &&
                top_logprobs.guards_intact());
  }
  TestTensor chosen_logprobs, top_ids, top_logprobs;
};

std::vector<int32_t> best_ids(std::span<const float> logits, int64_t count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  ids.resize(static_cast<size_t>(count));
  return ids;
}

// Columns beyond vocab_size hold whatever the test left there.
void check(const TestTensor& logits, int64_t vocab_size, int64_t num_top) {
  SCOPED_TRACE(testing::Message() << logits.view().describe() << " vocab " << vocab_size << " top "
                                  << num_top);
  const std::vector<float> values = logits.values();
  const auto padded = static_cast<size_t>(logits.view().size(1)),
             vocab = static_cast<size_t>(vocab_size);
  std::vector<int32_t> chosen, top_ids;
  std::vector<double> chosen_ref, top_ref;
  for (size_t row = 0; row < static_cast<size_t>(logits.num_rows()); ++row) {
    const auto in = std::span(values).subspan(row * padded, vocab);
    const auto ref = logprobs_ref(in);
    chosen.push_back(static_cast<int32_t>((row * 7919 + vocab - 1) % vocab));
    chosen_ref.push_back(ref[static_cast<size_t>(chosen.back())]);
    for (const int32_t id : best_ids(in, num_top)) {
      top_ids.push_back(id);
      top_ref.push_back(ref[static_cast<size_t>(id)]);
    }
  }
  const Result run(logits, vocab_size, chosen, num_top);
  EXPECT_TRUE(matches("logprobs chosen", run.chosen_logprobs.values(), chosen_ref, kTolerance));
  EXPECT_EQ(run.top_ids.ints(), top_ids);
  EXPECT_TRUE(matches("logprobs top", run.top_logprobs.values(), top_ref, kTolerance));
}

TEST_P(LogprobsTest, SizesAndPatterns) {
  for (const int64_t vocab : {1, 2, 7, 8, 9, 15, 16, 17, 33, 61, 1031, 2048, 2049, 4099}) {
    for (const int64_t num_top : {0, 1, 2, 5, 20}) {
      if (num_top > vocab) continue;
      for (const int64_t rows : {0, 1, 5}) {
        for (const Pattern pattern : kPatterns) {
          TestTensor logits(DType::kFp32, {rows, vocab}, num_top % 2 * 3);
          fill_random(logits, 1, 3, pattern);
          check(logits, vocab, num_top);
        }
      }
    }
  }
}

TEST_P(LogprobsTest, LargestVocabulary) {
  TestTensor logits(DType::kFp32, {2, 201088});
  fill_random(logits, 2, 2);
  check(logits, 201088, 20);
  check(logits, 200019, 20);
  fill_random(logits, 2, 1, Pattern::kEqual);
  check(logits, 201088, 20);
}

TEST_P(LogprobsTest, PaddingDoesNotCount) {
  for (const float padding : {1e30f, kInf, kNan}) {
    for (const int64_t vocab : {1, 5, 16, 19, 32, 33}) {
      TestTensor logits(DType::kFp32, {3, 40});
      fill_random(logits, 3);
      for (int64_t i = 0; i < logits.size(); ++i) {
        if (i % 40 >= vocab) logits.set(i, padding);
      }
      check(logits, vocab, 1);
      check(logits, vocab, std::min<int64_t>(vocab, 20));
    }
  }
}

TEST_P(LogprobsTest, TiesGoToTheLowerId) {
  TestTensor logits(DType::kFp32, {1, 100});
  for (int64_t i = 0; i < 100; ++i) logits.set(i, static_cast<double>(i % 5));
  EXPECT_EQ(Result(logits, 100, {0}, 4).top_ids.ints(), (std::vector<int32_t>{4, 9, 14, 19}));
  check(logits, 100, 20);
}

TEST_P(LogprobsTest, MaskedLogits) {
  TestTensor logits(DType::kFp32, {2, 50});
  fill_random(logits, 4);
  for (int64_t i = 0; i < 48; ++i) logits.set(50 + i, -kInf);
  logits.set(49, -kInf);
  check(logits, 50, 10);
}

TEST_P(LogprobsTest, NanRowGivesNanAndNoIds) {
  for (const int64_t at : {0, 20, 32, 36}) {
    TestTensor logits(DType::kFp32, {3, 40});
    fill_random(logits, 5);
    logits.set(40 + at, kNan);
    const Result run(logits, 37, {1, 1, 1}, 3);
    for (int64_t row = 0; row < 3; ++row) {
      EXPECT_EQ(std::isnan(run.chosen_logprobs.get(row)), row == 1) << at;
      for (int64_t i = row * 3; i < row * 3 + 3; ++i) {
        EXPECT_EQ(std::isnan(run.top_logprobs.get(i)), row == 1) << at;
        EXPECT_EQ(run.top_ids.get_int(i) == -1, row == 1) << at;
      }
    }
  }
}

TEST_P(LogprobsTest, ChosenOutsideTheVocabularyIsNan) {
  TestTensor logits(DType::kFp32, {5, 40});
  fill_random(logits, 6);
  const Result run(logits, 37, {-1, 37, 39, std::numeric_limits<int32_t>::max(), 36}, 0);
  for (int64_t row = 0; row < 5; ++row)
    EXPECT_EQ(std::isnan(run.chosen_logprobs.get(row)), row < 4);
}

TEST_P(LogprobsTest, SameBitsAloneInABatchAndOnAnyThreads) {
  TestTensor logits(DType::kFp32, {23, 5003});
  fill_random(logits, 7, 3);
  const std::vector<int32_t> chosen(23, 17);
  const Result first(logits, 5003, chosen, 5, 1);
  for (const int threads : {2, 3}) {
    const Result run(logits, 5003, chosen, 5, threads);
    EXPECT_EQ(run.chosen_logprobs.bits(), first.chosen_logprobs.bits());
    EXPECT_EQ(run.top_logprobs.bits(), first.top_logprobs.bits());
  }
  for (const int64_t row : {0, 11, 22}) {
    TestTensor one(DType::kFp32, {1, 5003});
    one.copy_row(0, logits, row);
    const Result run(one, 5003, {17}, 5);
    EXPECT_EQ(run.chosen_logprobs.get(0), first.chosen_logprobs.get(row));
    EXPECT_EQ(run.top_logprobs.bits(), first.top_logprobs.row_bits(row, row + 1));
  }
}

}  // namespace
}  // namespace briar

#include "kernels/sampling/sampler.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "kernels/sampling/logprobs.h"
#include "kernels/sampling/sampler_ref.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(SamplerTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kDraws = 20'000;

std::vector<int32_t> draw(const TensorView& logits, int64_t vocab_size,
                          const std::vector<SamplingRow>& rows, int threads = 2) {
  TestTensor ids(DType::kInt32, {static_cast<int64_t>(rows.size())});
  const TestBytes parameters(std::vector<SamplingRow>(rows.begin(), rows.end()));
  sampler(
      test_stream(threads),
      {logits, vocab_size, static_cast<const SamplingRow*>(parameters.kernel_data()), ids.view()});
  EXPECT_TRUE(ids.guards_intact());
  return ids.ints();
}

// One token for a single row of logits.
int32_t draw_one(const std::vector<float>& logits, const SamplingRow& row) {
  TestTensor t(DType::kFp32, {1, static_cast<int64_t>(logits.size())});
  for (size_t i = 0; i < logits.size(); ++i) t.set(static_cast<int64_t>(i), logits[i]);
  return draw(t.view(), t.size(), {row})[0];
}

// The chi-square value that is exceeded once in a million (Wilson and Hilferty's approximation).
double chi_square_limit(double degrees) {
  const double v = 2 / (9 * degrees);
  return degrees * std::pow(1 - v + 4.75 * std::sqrt(v), 3);
}

// Bins that expect fewer than five draws are taken together.
void check_counts(const std::vector<int64_t>& counts, const std::vector<double>& probabilities,
                  int64_t draws) {
  double statistic = 0, rest_expected = 0;
  int64_t rest = 0, bins = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++bins;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(draws);
    if (probabilities[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was filtered out";
    } else if (expected < 5) {
      rest += counts[i];
      rest_expected += expected;
    } else {
      add(static_cast<double>(counts[i]), expected);
    }
  }
  if (rest_expected > 0) add(static_cast<double>(rest), std::max(rest_expected, 1.0));
  EXPECT_LE(statistic, chi_square_limit(static_cast<double>(std::max<int64_t>(bins - 1, 1))))
      << bins << " bins";
}

using KeyOf = std::function<RandomKey(uint32_t)>;
const KeyOf kByPosition = [](uint32_t i) { return RandomKey{.seed = 99, .position = i}; };

void check_distribution(const std::vector<float>& logits, SamplingRow row,
                        const KeyOf& key_of = kByPosition) {
  SCOPED_TRACE(fmt::format("vocab {} temperature {} top_k {} top_p {} min_p {}", logits.size(),
                           row.temperature, row.top_k, row.top_p, row.min_p));
  const auto vocab = static_cast<int64_t>(logits.size());
  TestTensor t(DType::kFp32, {kDraws, vocab}, 3);
  std::vector<SamplingRow> rows;
  for (int64_t i = 0; i < kDraws; ++i) {
    for (int64_t j = 0; j < vocab; ++j) t.set(i * vocab + j, logits[static_cast<size_t>(j)]);
    row.random = key_of(static_cast<uint32_t>(i));
    rows.push_back(row);
  }
  std::vector<int64_t> counts(logits.size());
  for (const int32_t id : draw(t.view(), vocab, rows)) {
    ASSERT_TRUE(id >= 0 && id < vocab) << id;
    ++counts[static_cast<size_t>(id)];
  }
  check_counts(counts, sampler_ref(logits, row), kDraws);
}

std::vector<float> random_logits(size_t vocab, uint64_t seed, double scale) {
  std::vector<float> logits;
  for (size_t i = 0; i < vocab; ++i)
    logits.push_back(static_cast<float>(scale * gaussian(seed, i)));
  return logits;
}

TEST_P(SamplerTest, TemperatureDistribution) {
  for (const size_t vocab : {1, 2, 15, 16, 17, 37}) {
    for (const float temperature : {0.3f, 1.f, 2.5f}) {
      check_distribution(random_logits(vocab, vocab, 1.5), {.temperature = temperature});
    }
  }
}

TEST_P(SamplerTest, FilteredDistributions) {
  const std::vector<float> logits = random_logits(29, 5, 1.5);
  for (const int32_t top_k : {1, 2, 7, 28, 29, 1000}) {
    check_distribution(logits, {.temperature = 1, .top_k = top_k});
  }
  for (const float top_p : {0.f, 0.01f, 0.3f, 0.77f, 0.95f, 0.999f}) {
    check_distribution(logits, {.temperature = 1, .top_p = top_p});
    check_distribution(logits, {.temperature = 0.6f, .top_p = top_p});
  }
  for (const float min_p : {0.01f, 0.2f, 0.6f, 1.f}) {
    check_distribution(logits, {.temperature = 1, .min_p = min_p});
    check_distribution(logits, {.temperature = 1.8f, .min_p = min_p});
  }
}

TEST_P(SamplerTest, CombinedFilters) {
  const std::vector<float> logits = random_logits(29, 6, 1.5);
  for (const float temperature : {0.7f, 1.5f}) {
    for (const int32_t top_k : {0, 5, 12}) {
      for (const float top_p : {0.5f, 0.9f}) {
        for (const float min_p : {0.f, 0.15f}) {
          check_distribution(
              logits, {.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p});
        }
      }
    }
  }
}

// Ties at the edge of a filter: the lower ids stay. Half of the mass is exactly reached by four of
// eight equal tokens.
TEST_P(SamplerTest, TiesAtTheEdge) {
  const std::vector<float> equal(8, 1.25f);
  check_distribution(equal, {.temperature = 1, .top_k = 3});
  check_distribution(equal, {.temperature = 1, .top_p = 0.4f});
  check_distribution(equal, {.temperature = 1, .top_p = 0.5f});
  check_distribution(equal, {.temperature = 1, .min_p = 1});
  check_distribution({0, 3, 1, 3, 3, 2, 3}, {.temperature = 1, .top_k = 2});
}

TEST_P(SamplerTest, MaskedTokensAreNeverDrawn) {
  std::vector<float> logits = random_logits(40, 7, 1);
  for (size_t i = 0; i < 40; i += 2) logits[i] = -kInf;
  check_distribution(logits, {.temperature = 1});
  check_distribution(logits, {.temperature = 2, .top_k = 30, .top_p = 0.99f, .min_p = 0.001f});
  for (size_t i = 0; i < 39; ++i) logits[i] = -kInf;
  check_distribution(logits, {.temperature = 1});
}

// Draws by seed, and by choice, are as independent as those by position.
TEST_P(SamplerTest, EveryFieldOfTheKeyRandomises) {
  const std::vector<float> logits = random_logits(20, 8, 1);
  check_distribution(logits, {.temperature = 1}, [](uint32_t i) { return RandomKey{.seed = i}; });
  check_distribution(logits, {.temperature = 1}, [](uint32_t i) { return RandomKey{.choice = i}; });
  check_distribution(logits, {.temperature = 1}, [](uint32_t i) {
    return RandomKey{.position = i, .purpose = RandomPurpose::kDraft};
  });
}

// Mass is not lost over a long row: counts over 16 slices of the largest vocabulary.
TEST_P(SamplerTest, LargestVocabulary) {
  constexpr int64_t kVocab = 201088, kRows = 4, kSlices = 16;
  for (const auto& [scale, row] : {std::pair<double, SamplingRow>{0.0, {.temperature = 1}},
                                   {3.0, {.temperature = 1}},
                                   {1.0, {.temperature = 1, .top_p = 0.9f}}}) {
    TestTensor logits(DType::kFp32, {kRows, kVocab});
    const std::vector<float> one = random_logits(kVocab, 9, scale);
    for (int64_t i = 0; i < logits.size(); ++i) logits.set(i, one[static_cast<size_t>(i % kVocab)]);
    std::vector<double> expected(kSlices);
    const std::vector<double> p = sampler_ref(one, row);
    for (size_t i = 0; i < p.size(); ++i) expected[i * kSlices / p.size()] += p[i];
    std::vector<int64_t> counts(kSlices);
    const uint32_t calls = row.top_p < 1 ? 40 : 150;
    for (uint32_t call = 0; call < calls; ++call) {
      std::vector<SamplingRow> rows(kRows, row);
      for (uint32_t r = 0; r < kRows; ++r)
        rows[r].random = {.seed = 5, .choice = r, .position = call};
      for (const int32_t id : draw(logits.view(), kVocab, rows)) {
        ASSERT_GT(p[static_cast<size_t>(id)], 0) << id;
        ++counts[static_cast<size_t>(id * kSlices / kVocab)];
      }
    }
    check_counts(counts, expected, kRows * calls);
  }
}

TEST_P(SamplerTest, GreedyTakesTheLargestAndTheLowestOfEquals) {
  for (const int64_t vocab : {1, 2, 7, 8, 9, 16, 17, 33, 1031, 201088}) {
    for (const int64_t at : {int64_t{0}, vocab / 2, vocab - 1}) {
      TestTensor logits(DType::kFp32, {2, vocab}, 1);
      fill_random(logits, 1);
      for (int64_t i = at; i < vocab; i += 5) logits.set(i, 9), logits.set(vocab + i, 9);
      logits.set(2 * vocab - 1, 10);
      EXPECT_EQ(draw(logits.view(), vocab, std::vector<SamplingRow>(2)),
                (std::vector<int32_t>{static_cast<int32_t>(at), static_cast<int32_t>(vocab - 1)}));
    }
  }
  EXPECT_EQ(draw_one({-kInf, -kInf, -3e38f, -kInf}, {}), 2);
  EXPECT_EQ(draw_one({0.f, 1.f, kInf, 5.f}, {}), 2);
  EXPECT_EQ(draw_one({-0.f, 0.f, -1.f}, {}), 0);
  // The filters do not touch a greedy row.
  EXPECT_EQ(draw_one({1, 3, 2, 3}, {.top_k = 3, .top_p = 0.1f, .min_p = 0.9f}), 1);
}

TEST_P(SamplerTest, FiltersThatLeaveOneTokenAreGreedy) {
  for (uint32_t i = 0; i < 200; ++i) {
    const std::vector<float> logits = random_logits(100, i, 0.1);
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const RandomKey key{.seed = i};
    EXPECT_EQ(draw_one(logits, {.temperature = 1, .top_k = 1, .random = key}), best);
    EXPECT_EQ(draw_one(logits, {.temperature = 1, .top_p = 1e-6f, .random = key}), best);
    EXPECT_EQ(draw_one(logits, {.temperature = 1, .min_p = 1, .random = key}), best);
    for (const float temperature : {1e-5f, 1e-30f, 1.2e-38f, 1e-44f}) {
      EXPECT_EQ(draw_one(logits, {.temperature = temperature, .random = key}), best) << temperature;
    }
  }
}

TEST_P(SamplerTest, LargeLogitsAndTemperatures) {
  check_distribution({3e38f, -3e38f, 3e38f}, {.temperature = 1});
  check_distribution({80, 79, 10, -100}, {.temperature = 1});
  check_distribution({-1000, -1001, -1002}, {.temperature = 1});
  check_distribution({1, 5, 9, -20}, {.temperature = 1e30f});
}

TEST_P(SamplerTest, NanRowGivesNoToken) {
  for (const int64_t at : {0, 20, 32, 36}) {
    for (const float temperature : {0.f, 1.f}) {
      TestTensor logits(DType::kFp32, {3, 40});
      fill_random(logits, 2);
      logits.set(40 + at, kNan);
      const std::vector<SamplingRow> rows(3,
                                          {.temperature = temperature, .top_k = 5, .top_p = 0.9f});
      const auto ids = draw(logits.view(), 37, rows);
      EXPECT_EQ(ids[1], -1) << at;
      EXPECT_TRUE(ids[0] >= 0 && ids[0] < 37 && ids[2] >= 0 && ids[2] < 37);
    }
  }
}

// Rows without a distribution still name a token of the vocabulary or none.
TEST_P(SamplerTest, InfiniteRowsStayInRange) {
  for (const SamplingRow& row :
       std::vector<SamplingRow>{{},
                                {.temperature = 1},
                                {.temperature = 1, .top_k = 2},
                                {.temperature = 1, .top_p = 0.9f, .min_p = 0.1f}}) {
    for (const std::vector<float>& logits :
         std::vector<std::vector<float>>{{-kInf, -kInf, -kInf},
                                         {0, kInf, 1},
                                         {kInf, kInf, kInf},
                                         std::vector<float>(100, -kInf)}) {
      const int32_t id = draw_one(logits, row);
      EXPECT_TRUE(id >= -1 && id < static_cast<int32_t>(logits.size())) << id;
    }
    EXPECT_EQ(draw_one({0, kInf, 1}, row), 1) << "an infinite logit has all the mass";
  }
}

TEST_P(SamplerTest, SameKeySameTokenInAnyCompany) {
  constexpr int64_t kVocab = 5003, kRows = 32;
  TestTensor logits(DType::kFp32, {kRows, kVocab}, 3);
  fill_random(logits, 3, 2);
  std::vector<SamplingRow> rows;
  for (uint32_t i = 0; i < kRows; ++i) {
    rows.push_back({.temperature = 0.5f + 0.1f * static_cast<float>(i % 7),
                    .top_k = i % 3 == 0 ? 50 : 0,
                    .top_p = i % 4 == 1 ? 0.9f : 1.f,
                    .min_p = i % 5 == 2 ? 0.05f : 0.f,
                    .random = {.seed = i, .position = 7}});
  }
  const auto first = draw(logits.view(), kVocab, rows, 1);
  for (const int threads : {1, 2, 3}) EXPECT_EQ(draw(logits.view(), kVocab, rows, threads), first);
  for (int64_t i = 0; i < kRows; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(draw(logits.view().rows(i, i + 1), kVocab, {rows[at]})[0], first[at]) << i;
    // Among other rows at another place, and with wider padding.
    TestTensor other(DType::kFp32, {3, kVocab + 61});
    fill_random(other, 4);
    for (int64_t j = 0; j < kVocab; ++j)
      other.set(2 * (kVocab + 61) + j, logits.get(i * kVocab + j));
    EXPECT_EQ(draw(other.view(), kVocab, {rows[0], rows[1], rows[at]})[2], first[at]) << i;
  }
}

TEST_P(SamplerTest, NoRows) {
  TestTensor logits(DType::kFp32, {0, 100});
  EXPECT_TRUE(draw(logits.view(), 100, {}).empty());
}

// vllm-project/vllm#13175: ids beyond the tokenizer's were sampled from the padding of the head.
TEST(Users, T05_PaddingIsNeverSampledNorInTopLogprobs) {
  constexpr int64_t kVocab = 19, kPadded = 32, kRows = 2000;
  for (const CpuIsa isa : testable_isas()) {
    const ScopedCpuIsa scoped(isa);
    for (const float padding : {0.f, 1000.f, kInf, kNan}) {
      TestTensor logits(DType::kFp32, {kRows, kPadded});
      fill_random(logits, 1);
      for (int64_t i = 0; i < logits.size(); ++i) {
        if (i % kPadded >= kVocab) logits.set(i, padding);
      }
      for (const SamplingRow& row : std::vector<SamplingRow>{{},
                                                             {.temperature = 1},
                                                             {.temperature = 5, .top_k = 25},
                                                             {.temperature = 5, .top_p = 0.999f},
                                                             {.temperature = 5, .min_p = 0.001f}}) {
        std::vector<SamplingRow> rows(kRows, row);
        for (uint32_t i = 0; i < kRows; ++i) rows[i].random.position = i;
        for (const int32_t id : draw(logits.view(), kVocab, rows)) {
          ASSERT_TRUE(id >= 0 && id < kVocab) << id << " with padding " << padding;
        }
      }
      const TestTensor chosen = int_tensor(std::vector<int32_t>(kRows, 0));
      TestTensor chosen_logprobs(DType::kFp32, {kRows}), top_ids(DType::kInt32, {kRows, kVocab}),
          top_logprobs(DType::kFp32, {kRows, kVocab});
      logprobs(test_stream(), {logits.view(), kVocab, chosen.view(), chosen_logprobs.view(),
                               top_ids.view(), top_logprobs.view()});
      for (const int32_t id : top_ids.ints()) ASSERT_TRUE(id >= 0 && id < kVocab) << id;
    }
  }
}

}  // namespace
}  // namespace briar

// The reference against Hugging Face's float32 outputs, and every mistake against the bound that
// the product has to meet.
#include "reference/gpt_oss_reference.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "base/file.h"
#include "base/json.h"

namespace briar::reference {
namespace {

// What the product's float32 path must meet in every log-probability.
constexpr double kProductBound = 5e-4;
// Golden files have five decimals and float32 rounding behind them.
constexpr double kReferenceBound = 2e-5;

struct Golden {
  std::string name;
  std::vector<int32_t> prompt;
  std::vector<double> prompt_logprobs;
  std::vector<std::pair<int32_t, double>> next_top;
  std::vector<int32_t> greedy;
  std::vector<double> greedy_logprobs;
};

template <class T>
std::vector<T> numbers(const boost::json::value& list) {
  std::vector<T> out;
  for (const auto& value : list.as_array()) out.push_back(value.to_number<T>());
  return out;
}

Golden read_golden_line(std::string_view line, const std::string& source) {
  const auto parsed = json::parse(line, source);
  if (!parsed) throw UserError(parsed.error());
  const boost::json::object& object = parsed->as_object();
  Golden golden;
  golden.name = object.at("name").as_string().c_str();
  golden.prompt = numbers<int32_t>(object.at("prompt"));
  golden.prompt_logprobs = numbers<double>(object.at("prompt_logprobs"));
  golden.greedy = numbers<int32_t>(object.at("greedy"));
  golden.greedy_logprobs = numbers<double>(object.at("greedy_logprobs"));
  for (const auto& pair : object.at("next_top").as_array()) {
    golden.next_top.emplace_back(pair.at(0).to_number<int32_t>(), pair.at(1).to_number<double>());
  }
  return golden;
}

std::vector<Golden> read_golden(const std::string& model) {
  const std::string path = fmt::format("{}/golden/{}.jsonl", BRIAR_ASSETS_DIR, model);
  const auto file = MappedFile::open(path);
  if (!file) throw UserError(file.error());
  std::vector<Golden> goldens;
  std::string_view text = file->text();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    goldens.push_back(read_golden_line(text.substr(0, end), path));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return goldens;
}

const Golden& find_golden(const std::vector<Golden>& goldens, const std::string& name) {
  for (const Golden& golden : goldens) {
    if (golden.name == name) return golden;
  }
  throw std::runtime_error("no golden case " + name);
}

GptOssReference load(const std::string& model) {
  return GptOssReference(fmt::format("{}/models/{}", BRIAR_ASSETS_DIR, model));
}

struct Difference {
  double sum = 0;
  double largest = 0;
  int64_t count = 0;

  void add(double got, double want) {
    double difference = std::abs(got - want);
    if (!std::isfinite(difference)) difference = std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
    sum += difference;
    ++count;
  }
  void add(std::span<const double> got, std::span<const double> want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) add(got[i], want[i]);
  }
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

std::vector<double> log_softmax(std::vector<double> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - max);
  for (double& logit : logits) logit -= max + std::log(sum);
  return logits;
}

// prompt_logprobs and next_top of one case.
Difference compare(const GptOssReference& model, const Golden& golden) {
  const auto output = model.run(golden.prompt);
  Difference difference;
  difference.add(output.logprobs, golden.prompt_logprobs);
  const std::vector<double> next = log_softmax(output.final_logits);
  for (const auto& [token, logprob] : golden.next_top) difference.add(next[token], logprob);
  // No other token may be as likely as the listed ones.
  const double last = next[golden.next_top.back().first];
  EXPECT_EQ(std::count_if(next.begin(), next.end(), [&](double x) { return x >= last; }),
            std::ssize(golden.next_top));
  fmt::print("{}: largest difference {:.2g}, mean {:.2g}\n", golden.name, difference.largest,
             difference.mean());
  return difference;
}

TEST(GptOssReference, MatchesGoldenOfTheRandomModel) {
  const auto model = load("gpt-oss-random");
  int num_cases = 0;
  for (const Golden& golden : read_golden("gpt-oss-random")) {
    if (golden.prompt.size() > 700) continue;
    EXPECT_LE(compare(model, golden).largest, kReferenceBound) << golden.name;
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 8);
}

TEST(GptOssReference, MatchesGoldenContinuations) {
  const auto model = load("gpt-oss-random");
  const auto goldens = read_golden("gpt-oss-random");
  for (const char* name : {"random-1", "random-64", "random-129"}) {
    const Golden& golden = find_golden(goldens, name);
    std::vector<int32_t> tokens = golden.prompt;
    tokens.insert(tokens.end(), golden.greedy.begin(), golden.greedy.end());
    const auto output = model.run(tokens);
    Difference difference;
    difference.add(std::span(output.logprobs).subspan(golden.prompt.size() - 1),
                   golden.greedy_logprobs);
    EXPECT_LE(difference.largest, kReferenceBound) << name;
    fmt::print("{}: largest difference {:.2g}\n", name, difference.largest);
  }
}

TEST(GptOssReference, MatchesGoldenOfTheTrainedModel) {
  const auto model = load("tiny-harmony");
  const auto goldens = read_golden("tiny-harmony");
  for (const char* name : {"random-1", "conversation-36", "random-130"}) {
    EXPECT_LE(compare(model, find_golden(goldens, name)).largest, kReferenceBound) << name;
  }
}

TEST(GptOssReference, WindowMistakesShowAtTheirFirstPosition) {
  const auto model = load("gpt-oss-random");
  const auto goldens = read_golden("gpt-oss-random");
  const std::vector<int32_t>& prompt = find_golden(goldens, "random-130").prompt;
  const auto right = model.run(prompt).logprobs;
  const auto first_change = [&](Mistake mistake) {
    const auto wrong = model.run(prompt, mistake).logprobs;
    return std::mismatch(right.begin(), right.end(), wrong.begin()).first - right.begin();
  };
  // Positions count from 0: the one at 127 is the last that sees the first token.
  EXPECT_EQ(first_change(Mistake::kWindow127), 127);
  EXPECT_EQ(first_change(Mistake::kWindow129), 128);
}

// What a mistake was found to do, as a range of the mean and of the largest difference over all
// prompts; the prompts used here are fewer, hence the slack.
struct Range {
  double min;
  double max;
};
struct MistakeCase {
  Mistake mistake;
  Range mean;
  Range largest;
  bool needs_long_prompt = false;
};
// For the test's listing, which would show the struct's bytes otherwise.
void PrintTo(const MistakeCase& c, std::ostream* out) {
  *out << "mistake " << static_cast<int>(c.mistake);
}
constexpr double kSlack = 3;
constexpr Range kBiasMean = {0.14, 1.0};
constexpr Range kBiasLargest = {1.1, 4.1};

class GptOssMistake : public testing::TestWithParam<MistakeCase> {};

void expect_order(double value, Range range) {
  EXPECT_GE(value, range.min / kSlack);
  EXPECT_LE(value, range.max * kSlack);
}

TEST_P(GptOssMistake, FailsTheBoundOfTheProduct) {
  const MistakeCase& param = GetParam();
  const auto model = load("gpt-oss-random");
  const auto goldens = read_golden("gpt-oss-random");
  std::vector<const char*> prompts = {"random-128", "random-129", "random-130"};
  if (param.needs_long_prompt) prompts.push_back("random-700");
  Difference difference;
  for (const char* name : prompts) {
    const Golden& golden = find_golden(goldens, name);
    difference.add(model.run(golden.prompt, param.mistake).logprobs, golden.prompt_logprobs);
  }
  fmt::print("{}: mean {:.4f}, largest {:.3f}\n", to_string(param.mistake), difference.mean(),
             difference.largest);
  EXPECT_GT(difference.largest, kProductBound);
  expect_order(difference.mean(), param.mean);
  expect_order(difference.largest, param.largest);
}

INSTANTIATE_TEST_SUITE_P(
    All, GptOssMistake,
    testing::Values(MistakeCase{Mistake::kWindow127, {0.006, 0.008}, {0.4, 0.4}, true},
                    MistakeCase{Mistake::kWindow129, {0.006, 0.008}, {0.4, 0.4}, true},
                    MistakeCase{Mistake::kYarnTruncated, {0.003, 0.003}, {0.11, 0.11}},
                    MistakeCase{Mistake::kNoAttentionFactor, {0.36, 0.36}, {2.4, 2.4}},
                    MistakeCase{Mistake::kNoClamp, {0.12, 0.12}, {1.0, 1.0}},
                    MistakeCase{Mistake::kAlphaOne, {0.07, 0.07}, {0.7, 0.7}},
                    MistakeCase{Mistake::kNoPlusOne, {0.39, 0.39}, {2.3, 2.3}},
                    MistakeCase{Mistake::kSoftmaxBeforeTopK, {0.08, 0.08}, {0.7, 0.7}},
                    MistakeCase{Mistake::kNoSinks, {0.15, 0.15}, {2.4, 2.4}},
                    MistakeCase{Mistake::kNoQBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoKBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoVBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoOBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoRouterBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoGateUpBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kNoDownBias, kBiasMean, kBiasLargest},
                    MistakeCase{Mistake::kExpertWeightsBf16, {0.003, 0.003}, {0.16, 0.16}, true}),
    [](const auto& info) { return std::string(to_string(info.param.mistake)); });

}  // namespace
}  // namespace briar::reference

// Briar against Hugging Face transformers in float32 (assets/golden, docs/numerics.md). Each test
// prints the worst it saw beside the bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "engine_harness.h"

namespace briar {
namespace {

struct Bounds {
  const char* model;
  const char* precision;
  double prompt_mean, prompt_p99,
      prompt_max;     // of |difference of log-probability| over prompt tokens
  double greedy_max;  // over greedy tokens
  double margin;      // greedy tokens are equal wherever the reference's margin exceeds it
};

// For the test's listing, which would show the struct's bytes otherwise.
void PrintTo(const Bounds& b, std::ostream* out) { *out << b.model << " in " << b.precision; }

constexpr double kNoBound = 1e9;

struct Differences {
  std::vector<double> prompt, greedy;
  double largest_missed_margin = 0;

  void add(const GoldenCase& golden, const Collected& got) {
    ASSERT_EQ(got.prompt_logprobs.size(), golden.prompt_logprobs.size()) << golden.name;
    for (size_t i = 0; i < golden.prompt_logprobs.size(); ++i) {
      prompt.push_back(std::abs(double{golden.prompt_logprobs[i]} - got.prompt_logprobs[i]));
      ASSERT_FALSE(std::isnan(prompt.back())) << golden.name << " prompt token " << i;
    }
    // After the first token that differs the two texts are not comparable.
    for (size_t i = 0; i < golden.greedy.size(); ++i) {
      ASSERT_LT(i, got.tokens.size()) << golden.name << " ended early";
      if (got.tokens[i] != golden.greedy[i]) {
        largest_missed_margin = std::max<double>(largest_missed_margin, golden.margins[i]);
        return;
      }
      greedy.push_back(std::abs(double{golden.greedy_logprobs[i]} - got.logprobs[i]));
    }
    EXPECT_EQ(got.tokens.size(), golden.greedy.size()) << golden.name;
  }
};

void check_bounds(const Bounds& b, Differences& d) {
  std::sort(d.prompt.begin(), d.prompt.end());
  const double mean =
      std::accumulate(d.prompt.begin(), d.prompt.end(), 0.0) / static_cast<double>(d.prompt.size());
  const double p99 = d.prompt[d.prompt.size() * 99 / 100];
  const double greedy = *std::max_element(d.greedy.begin(), d.greedy.end());
  std::printf(
      "%s %s: prompt mean %.2g, p99 %.2g, max %.2g; greedy max %.2g; largest margin missed %.2g\n",
      b.model, b.precision, mean, p99, d.prompt.back(), greedy, d.largest_missed_margin);
  EXPECT_LE(mean, b.prompt_mean);
  EXPECT_LE(p99, b.prompt_p99);
  EXPECT_LE(d.prompt.back(), b.prompt_max);
  EXPECT_LE(greedy, b.greedy_max);
  EXPECT_LE(d.largest_missed_margin, b.margin);
}

class Golden : public testing::TestWithParam<Bounds> {};

TEST_P(Golden, AgreesWithTransformers) {
  const Bounds& b = GetParam();
  EngineOptions options = test_options(b.model, b.precision);
  const bool is_random = std::string(b.model).ends_with("-random");
  const auto engine = Engine::create(options);
  const std::vector<GoldenCase> cases = read_golden(b.model);
  ASSERT_GE(cases.size(), 6u);
  std::vector<Request> requests;
  const std::vector<int32_t> eos = is_random ? std::vector<int32_t>{1} : kHarmonyEos;
  for (const GoldenCase& c : cases) requests.push_back(scoring_request(c.prompt, c.generate, eos));
  const std::vector<Collected> results = run_all(*engine, std::move(requests));
  Differences d;
  for (size_t i = 0; i < cases.size(); ++i) {
    d.add(cases[i], results[i]);
    if (HasFatalFailure()) return;
    if (std::string(b.precision) != "fp32" || results[i].top.empty()) continue;
    for (size_t j = 0; j < cases[i].next_top.size(); ++j) {
      EXPECT_NEAR(results[i].top[0][j].logprob, cases[i].next_top[j].logprob, b.prompt_max)
          << cases[i].name;
    }
  }
  check_bounds(b, d);
}

// The bounds are twice to ten times what is measured here, and never above what docs/numerics.md
// promises.
INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    testing::Values(Bounds{"tiny-harmony", "fp32", 2e-3, 2e-3, 2e-3, 2e-3, 0.01},
                    Bounds{"tiny-harmony-draft", "fp32", 2e-3, 2e-3, 2e-3, 2e-3, 0.01},
                    Bounds{"gpt-oss-random", "fp32", 5e-4, 5e-4, 5e-4, 5e-4, 0.01},
                    Bounds{"tiny-harmony", "bf16", 0.015, 0.25, kNoBound, 0.25, 0.6},
                    Bounds{"tiny-harmony-draft", "bf16", 0.015, 0.25, kNoBound, 0.25, 0.6},
                    Bounds{"gpt-oss-random", "bf16", 0.03, 0.2, kNoBound, 0.64, 1.0},
                    Bounds{"llama3-random", "fp32", 2e-3, 2e-3, 2e-3, 2e-3, 0.01},
                    Bounds{"llama3-tied-random", "fp32", 2e-3, 2e-3, 2e-3, 2e-3, 0.01},
                    Bounds{"qwen2-random", "fp32", 2e-3, 2e-3, 2e-3, 2e-3, 0.01},
                    // Log-probabilities of -14 with a deviation of 4.4: rounding the KV cache
                    // alone is a mean of 0.013 to 0.018 (docs/numerics.md).
                    Bounds{"llama3-random", "bf16", 0.06, 0.2, kNoBound, 0.2, 0.1},
                    Bounds{"llama3-tied-random", "bf16", 0.06, 0.2, kNoBound, 0.2, 0.1},
                    Bounds{"qwen2-random", "bf16", 0.06, 0.2, kNoBound, 0.2, 0.1}),
    [](const auto& info) {
      std::string name = std::string(info.param.model) + "_" + info.param.precision;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// SmolLM2-135M-Instruct, a pretrained model in a Q4_1 GGUF, against float32 on exactly its
// dequantised weights. scripts/fetch_smollm2.sh brings the file, `make test` runs that.
class GoldenSmolLm2 : public testing::TestWithParam<Bounds> {};

TEST_P(GoldenSmolLm2, AgreesWithTransformers) {
  const Bounds& b = GetParam();
  EngineOptions options = test_options(b.model, b.precision);
  if (!std::filesystem::exists(options.model)) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << options.model << " is missing";
    GTEST_SKIP() << "no " << options.model << "; run scripts/fetch_smollm2.sh";
  }
  options.kv_cache_bytes = int64_t{1} << 30;
  const auto engine = Engine::create(options);
  const std::vector<GoldenCase> cases = read_golden("smollm2/smollm2-135m");
  ASSERT_EQ(cases.size(), 28u);
  std::vector<Request> requests;
  for (const GoldenCase& c : cases) requests.push_back(scoring_request(c.prompt, c.generate, {2}));
  const std::vector<Collected> results = run_all(*engine, std::move(requests));
  Differences d;
  for (size_t i = 0; i < cases.size(); ++i) {
    d.add(cases[i], results[i]);
    if (HasFatalFailure()) return;
  }
  check_bounds(b, d);
}

// 1e-3 in fp32 sees an eps of 1e-6 for 1e-5, which changes no greedy token.
INSTANTIATE_TEST_SUITE_P(
    Precisions, GoldenSmolLm2,
    testing::Values(Bounds{"smollm2-135m-instruct.gguf", "fp32", 1e-3, 1e-3, 1e-3, 1e-3, 0.005},
                    Bounds{"smollm2-135m-instruct.gguf", "bf16", 0.02, 0.25, kNoBound, 0.4, 0.5},
                    Bounds{"smollm2-135m-instruct.gguf", "native", 0.02, 0.25, kNoBound, 0.4, 0.5}),
    [](const auto& info) { return std::string(info.param.precision); });

// The checkpoint's own 4-bit experts are exact in bf16, and both forms add in the same order.
TEST(Precision, Mxfp4EqualsBf16ToTheBit) {
  const std::vector<GoldenCase> cases = read_golden("gpt-oss-random");
  std::vector<std::vector<Collected>> results;
  for (const char* precision : {"bf16", "mxfp4"}) {
    const auto engine = Engine::create(test_options("gpt-oss-random", precision));
    std::vector<Request> requests;
    for (const GoldenCase& c : cases) requests.push_back(scoring_request(c.prompt, c.generate));
    results.push_back(run_all(*engine, std::move(requests)));
  }
  for (size_t i = 0; i < cases.size(); ++i)
    expect_same_bits(results[0][i], results[1][i], cases[i].name);
}

}  // namespace
}  // namespace briar

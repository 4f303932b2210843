// What must not change a single bit of an answer: how the prompt is cut into chunks, the page size,
// the other sequences of the batch, the number of threads, preemption.
#include <gtest/gtest.h>

#include <functional>

#include "engine_harness.h"

namespace briar {
namespace {

// Prompts of gpt-oss-random of up to `longest` tokens: windows of 128, several pages, odd lengths.
std::vector<GoldenCase> prompts(size_t longest) {
  std::vector<GoldenCase> cases = read_golden("gpt-oss-random");
  std::erase_if(cases, [&](const GoldenCase& c) { return c.prompt.size() > longest; });
  EXPECT_GE(cases.size(), 8u);
  return cases;
}

std::vector<Collected> run_with(const std::vector<GoldenCase>& cases,
                                const std::function<void(EngineOptions&)>& change,
                                EngineStats* stats = nullptr) {
  EngineOptions options = test_options("gpt-oss-random", "bf16");
  change(options);
  const auto engine = Engine::create(options);
  std::vector<Request> requests;
  for (const GoldenCase& c : cases) requests.push_back(scoring_request(c.prompt, c.generate));
  auto results = run_all(*engine, std::move(requests));
  if (stats != nullptr) *stats = engine->stats();
  return results;
}

void expect_all_same(const std::vector<GoldenCase>& cases, const std::vector<Collected>& a,
                     const std::vector<Collected>& b, const std::string& what) {
  for (size_t i = 0; i < cases.size(); ++i)
    expect_same_bits(a[i], b[i], what + ", " + cases[i].name);
}

// One sequence after another, whole prompts, one thread.
void plainest(EngineOptions& o) {
  o.max_seqs = 1;
  o.chunk = o.max_batch_tokens = 8192;
  o.num_threads = 1;
}

class Equality : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cases_ = new std::vector<GoldenCase>(prompts(1100));
    reference_ = new std::vector<Collected>(run_with(*cases_, plainest));
  }
  static void TearDownTestSuite() {
    delete cases_;
    delete reference_;
  }
  void expect_equal_with(const std::function<void(EngineOptions&)>& change,
                         const std::string& what) {
    expect_all_same(*cases_, *reference_, run_with(*cases_, change), what);
  }
  static std::vector<GoldenCase>* cases_;
  static std::vector<Collected>* reference_;
};
std::vector<GoldenCase>* Equality::cases_ = nullptr;
std::vector<Collected>* Equality::reference_ = nullptr;

TEST_F(Equality, Chunks) {
  for (const int chunk : {1, 7, 64, 128, 1000}) {
    expect_equal_with(
        [&](EngineOptions& o) {
          plainest(o);
          o.chunk = chunk;
        },
        "chunk " + std::to_string(chunk));
  }
}

TEST_F(Equality, PageSizes) {
  for (const int page_size : {1, 16, 64, 100}) {
    expect_equal_with(
        [&](EngineOptions& o) {
          plainest(o);
          o.page_size = page_size;
        },
        "page size " + std::to_string(page_size));
  }
}

TEST_F(Equality, CompanyInTheBatch) {
  expect_equal_with([](EngineOptions& o) { o.max_seqs = 64; }, "all together");
  expect_equal_with(
      [](EngineOptions& o) {
        o.max_seqs = 3;
        o.max_batch_tokens = 50;
      },
      "three together, 50 tokens a step");
}

TEST_F(Equality, Overlap) {
  for (const bool overlaps : {false, true}) {
    expect_equal_with([&](EngineOptions& o) { o.overlaps = overlaps; },
                      overlaps ? "overlap" : "no overlap");
    expect_equal_with(
        [&](EngineOptions& o) {
          o.overlaps = overlaps;
          o.max_seqs = 3;
          o.chunk = 7;
          o.max_batch_tokens = 50;
        },
        "small steps");
  }
}

TEST_F(Equality, Threads) {
  for (const int threads : {2, 3, 7}) {
    expect_equal_with([&](EngineOptions& o) { o.num_threads = threads; },
                      std::to_string(threads) + " threads");
  }
}

// Room for 160 tokens: seven sequences start together and outgrow it. A preempted sequence is
// computed again in other chunks, on a row that another sequence may have had meanwhile: with a
// chunk of 1, its last one looks like a decode step.
TEST_F(Equality, Preemption) {
  std::vector<GoldenCase> cases(9);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].name = "prompt " + std::to_string(i);
    for (int32_t t = 0; t < 20; ++t)
      cases[i].prompt.push_back(3 + (static_cast<int32_t>(i) * 31 + t * t) % 500);
    cases[i].generate = 40;
  }
  cases[4].prompt.resize(1);  // nothing of it is scored, whatever is computed again
  const std::vector<Collected> reference = run_with(cases, plainest);
  for (const int chunk : {1, 3, 16}) {
    for (const bool caches : {false, true}) {
      EngineStats stats;
      const bool overlaps = chunk != 3;
      const auto results = run_with(
          cases,
          [&](EngineOptions& o) {
            o.page_size = 1;
            o.chunk = chunk;
            o.caches_prefixes = caches;
            o.overlaps = overlaps;
            o.max_model_len = 160;
            o.kv_cache_bytes = 560 << 10;
          },
          &stats);
      EXPECT_GT(stats.num_preemptions, 0u) << "the case does not test what it says";
      expect_all_same(cases, reference, results, "preempted, chunk " + std::to_string(chunk));
    }
  }
}

// Without prompt log-probabilities, so that the cache may be used; everything else is compared.
TEST_F(Equality, PrefixCache) {
  auto run_twice = [&](bool caches, int page_size, EngineStats* stats) {
    EngineOptions options = test_options("gpt-oss-random", "bf16");
    options.caches_prefixes = caches;
    options.page_size = page_size;
    options.max_model_len = 1200;
    options.chunk = 64;
    const auto engine = Engine::create(options);
    std::vector<Collected> all;
    for (int round = 0; round < 2; ++round) {
      std::vector<Request> requests;
      for (const GoldenCase& c : *cases_) {
        requests.push_back(scoring_request(c.prompt, c.generate));
        requests.back().wants_prompt_logprobs = false;
        // A beginning of another length: half of the prompt, then something else.
        std::vector<int32_t> half(c.prompt.begin(),
                                  c.prompt.begin() + static_cast<long>(c.prompt.size() / 2));
        half.push_back(7);
        requests.push_back(scoring_request(half, 8));
        requests.back().wants_prompt_logprobs = false;
      }
      for (Collected& c : run_all(*engine, std::move(requests))) all.push_back(std::move(c));
    }
    *stats = engine->stats();
    return all;
  };
  EngineStats off, on;
  const auto reference = run_twice(false, 16, &off);
  EXPECT_EQ(off.num_cached_tokens, 0u);
  const auto cached = run_twice(true, 16, &on);
  EXPECT_GT(on.num_cached_tokens, 2000u);
  EXPECT_LT(on.num_prompt_tokens, off.num_prompt_tokens - 2000);
  for (size_t i = 0; i < reference.size(); ++i) {
    expect_same_bits(reference[i], cached[i], "cached, request " + std::to_string(i));
  }
  for (const int page_size : {1, 7, 64}) {
    EngineStats stats;
    const auto results = run_twice(true, page_size, &stats);
    EXPECT_GT(stats.num_cached_tokens, 1500u);
    for (size_t i = 0; i < reference.size(); ++i) {
      expect_same_bits(reference[i], results[i],
                       "page size " + std::to_string(page_size) + ", request " + std::to_string(i));
    }
  }
}

TEST_F(Equality, SaltsDoNotShare) {
  const auto engine = Engine::create(test_options("gpt-oss-random", "bf16"));
  const std::vector<int32_t> prompt(100, 5);
  std::vector<int64_t> cached;
  for (const char* salt : {"a", "b", "a", ""}) {
    Request r = scoring_request(prompt, 2);
    r.wants_prompt_logprobs = false;
    r.cache_salt = salt;
    r.on_output = [&](const Output& o) {
      if (o.finish_reason != FinishReason::kNone) cached.push_back(o.num_cached_tokens);
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(r)).ok());
    engine->drain();
  }
  EXPECT_EQ(cached, (std::vector<int64_t>{0, 0, 96, 0}));
}

TEST_F(Equality, SampledTokensDependOnTheSeedAlone) {
  auto sampled = [&](int max_seqs) {
    EngineOptions options = test_options("gpt-oss-random", "bf16");
    options.max_seqs = max_seqs;
    const auto engine = Engine::create(options);
    std::vector<Request> requests;
    for (const GoldenCase& c : *cases_) {
      for (uint32_t choice = 0; choice < 3; ++choice) {
        Request r = scoring_request(c.prompt, 20);
        r.sampling = {.temperature = 1.3f,
                      .top_k = 50,
                      .top_p = 0.95f,
                      .min_p = 0.01f,
                      .seed = 7,
                      .choice = choice};
        requests.push_back(std::move(r));
      }
    }
    return run_all(*engine, std::move(requests));
  };
  const auto alone = sampled(1), crowd = sampled(64);
  size_t num_different_choices = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    expect_same_bits(alone[i], crowd[i], "request " + std::to_string(i));
    if (i % 3 != 0) num_different_choices += alone[i].tokens != alone[i - i % 3].tokens ? 1 : 0;
  }
  EXPECT_EQ(num_different_choices, cases_->size() * 2)
      << "choices of one prompt are independent draws";
}

}  // namespace
}  // namespace briar

// The engine's behaviour towards its callers, and its accounting of pages under stress.
#include "briar/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "engine_harness.h"

namespace briar {
namespace {

std::unique_ptr<Engine> small_engine(int max_seqs = 8) {
  EngineOptions options = test_options("gpt-oss-random", "bf16");
  options.max_seqs = max_seqs;
  options.chunk = 16;
  options.max_batch_tokens = 64;
  options.max_model_len = 256;
  options.kv_cache_bytes = 1 << 20;
  return Engine::create(options);
}

std::vector<int32_t> ids(int n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<int32_t>(random() % 512));
  return out;
}

std::string submit_error(Engine& engine, Request request) {
  auto id = engine.submit(std::move(request));
  return id.ok() ? "accepted" : id.error().message;
}

TEST(Engine, RefusesBadRequestsWithTheirValues) {
  const auto engine = small_engine();
  auto with = [&](auto change) {
    Request r = scoring_request({1, 2, 3}, 4);
    change(r);
    return submit_error(*engine, std::move(r));
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(with([](Request& r) { r.prompt.clear(); }).find("empty"), std::string::npos);
  EXPECT_NE(with([](Request& r) {
              r.prompt = {1, 512};
            }).find("prompt[1] is the id 512"),
            std::string::npos);
  EXPECT_NE(with([](Request& r) { r.prompt = {-1}; }).find("id -1"), std::string::npos);
  EXPECT_NE(with([](Request& r) { r.prompt.assign(256, 1); }).find("256 tokens"),
            std::string::npos);
  EXPECT_NE(with([](Request& r) { r.max_tokens = -1; }).find("max_tokens is -1"),
            std::string::npos);
  EXPECT_NE(with([](Request& r) { r.sampling.temperature = -1; }).find("temperature is -1"),
            std::string::npos);
  EXPECT_NE(with([&](Request& r) { r.sampling.temperature = kNan; }).find("temperature is nan"),
            std::string::npos);
  EXPECT_NE(with([](Request& r) { r.sampling.top_p = 0; }).find("top_p is 0"), std::string::npos);
  EXPECT_NE(with([](Request& r) { r.sampling.min_p = 2; }).find("min_p is 2"), std::string::npos);
  EXPECT_NE(with([](Request& r) { r.sampling.top_k = -3; }).find("top_k is -3"), std::string::npos);
  EXPECT_NE(with([](Request& r) { r.num_top_logprobs = 1000; }).find("1000"), std::string::npos);
  EXPECT_EQ(run_all(*engine, {scoring_request({1, 2, 3}, 4)})[0].tokens.size(), 4u)
      << "still serving";
}

TEST(Engine, EndsAtMaxTokensAtStopIdsAndAtTheModelsLength) {
  const auto engine = small_engine();
  const auto prompt = ids(20, 1);
  const Collected whole = run_all(*engine, {scoring_request(prompt, 12)})[0];
  EXPECT_EQ(whole.tokens.size(), 12u);
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
  const int32_t stop = whole.tokens[5];
  const auto first = static_cast<size_t>(std::find(whole.tokens.begin(), whole.tokens.end(), stop) -
                                         whole.tokens.begin());
  const Collected stopped = run_all(*engine, {scoring_request(prompt, 12, {stop})})[0];
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens,
            std::vector<int32_t>(whole.tokens.begin(),
                                 whole.tokens.begin() + static_cast<long>(first) + 1));
  const Collected longest = run_all(*engine, {scoring_request(ids(250, 2), 1000)})[0];
  EXPECT_EQ(longest.tokens.size(), 6u);
  EXPECT_EQ(longest.finish_reason, FinishReason::kLength);
}

TEST(Engine, PrefillOnlyGivesPromptLogprobsAndNoTokens) {
  const auto engine = small_engine();
  const auto prompt = ids(40, 3);
  const Collected with = run_all(*engine, {scoring_request(prompt, 1)})[0];
  const Collected without = run_all(*engine, {scoring_request(prompt, 0)})[0];
  EXPECT_TRUE(without.tokens.empty());
  EXPECT_EQ(without.finish_reason, FinishReason::kLength);
  EXPECT_EQ(without.prompt_logprobs, with.prompt_logprobs);
  EXPECT_EQ(without.prompt_logprobs.size(), 39u);
}

TEST(Engine, CancelFromAnotherThreadAndFromTheCallback) {
  const auto engine = small_engine();
  std::atomic<int> num_tokens{0};
  std::atomic<bool> cancelled{false};
  Request request = scoring_request(ids(10, 4), 200);
  request.on_output = [&](const Output& o) {
    num_tokens += static_cast<int>(o.tokens.size());
    if (num_tokens == 5) engine->cancel(o.request_id);
    if (o.finish_reason == FinishReason::kCancelled) cancelled = true;
    return true;
  };
  ASSERT_TRUE(engine->submit(std::move(request)).ok());
  engine->drain();
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(num_tokens, 5) << "within one step";
  engine->cancel(999999);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_free_pages, stats.num_pages);
}

TEST(Engine, DestructionEndsWhatRuns) {
  std::atomic<int> num_ends{0};
  {
    const auto engine = small_engine();
    for (uint32_t i = 0; i < 20; ++i) {
      Request request = scoring_request(ids(30, i), 200);
      request.on_output = [&](const Output& o) {
        num_ends += o.finish_reason != FinishReason::kNone ? 1 : 0;
        return true;
      };
      ASSERT_TRUE(engine->submit(std::move(request)).ok());
    }
  }
  EXPECT_EQ(num_ends, 20);
}

// 10,000 random additions, cancellations, natural ends and waits for steps; pages are so few that
// sequences preempt each other. The engine checks its page accounting after every step
// (checks_invariants).
TEST(Engine, TenThousandRandomOperationsLoseNothing) {
  const auto engine = small_engine(6);
  std::mt19937 random(2026);
  std::mutex mutex;
  std::vector<uint64_t> open;
  std::atomic<int64_t> num_ended{0};
  std::atomic<int64_t> num_errors{0};
  int64_t num_submitted = 0;
  for (int i = 0; i < 10000; ++i) {
    const uint32_t what = random() % 10;
    if (what < 4) {
      const int length = 1 + static_cast<int>(random() % (random() % 8 == 0 ? 200 : 20));
      Request r = scoring_request(ids(length, random()), random() % 6);
      r.num_top_logprobs = -1;
      r.wants_prompt_logprobs = random() % 4 == 0;
      r.on_output = [&](const Output& o) {
        if (o.finish_reason == FinishReason::kNone) return true;
        ++num_ended;
        if (o.finish_reason == FinishReason::kError) ++num_errors;
        return true;
      };
      auto id = engine->submit(std::move(r));
      ASSERT_TRUE(id.ok()) << id.error().message;
      ++num_submitted;
      std::lock_guard lock(mutex);
      open.push_back(*id);
    } else if (what < 6 && !open.empty()) {
      engine->cancel(open[random() % open.size()]);
    } else {
      const uint64_t step = engine->stats().num_steps;
      for (int spins = 0;
           spins < 200 && engine->stats().num_steps == step && num_ended < num_submitted; ++spins) {
        std::this_thread::yield();
      }
    }
  }
  engine->drain();
  const EngineStats stats = engine->stats();
  std::printf("%ld requests, %lu steps, %lu preemptions\n", static_cast<long>(num_submitted),
              static_cast<unsigned long>(stats.num_steps),
              static_cast<unsigned long>(stats.num_preemptions));
  EXPECT_EQ(num_ended, num_submitted);
  EXPECT_EQ(num_errors, 0);
  EXPECT_EQ(stats.num_free_pages, stats.num_pages);
  EXPECT_EQ(stats.num_running + stats.num_waiting, 0);
}

// What does not fit beside the others waits; it is not begun, thrown away and begun again with
// every step.
TEST(Engine, FewPagesDoNotMakeMoreWork) {
  EngineOptions options = test_options("gpt-oss-random", "bf16");
  options.max_model_len = 1100;
  options.kv_cache_bytes = 2800000;
  options.caches_prefixes = false;
  const auto engine = Engine::create(options);
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 6; ++i) requests.push_back(scoring_request(ids(900, i), 100));
  for (const Collected& c : run_all(*engine, std::move(requests))) EXPECT_EQ(c.tokens.size(), 100u);
  EXPECT_LE(engine->stats().num_prompt_tokens, 6u * 900u + 2000u);
}

TEST(Engine, AThrowingCallbackFailsEveryRequestOnceAndNothingHangs) {
  const auto engine = small_engine();
  std::atomic<int> num_ends{0};
  for (uint32_t i = 0; i < 5; ++i) {
    Request request = scoring_request(ids(10, i), 20);
    request.on_output = [&, i](const Output& o) {
      if (o.finish_reason != FinishReason::kNone) ++num_ends;
      (void)engine->submit(scoring_request({1}, 1));  // allowed here, and refused after the failure
      if (i == 2) throw 7;
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(request)).ok());
  }
  EXPECT_THROW(engine->drain(), int);
  EXPECT_EQ(num_ends, 5);
  EXPECT_FALSE(engine->submit(scoring_request({1}, 1)).ok());
}

TEST(Engine, PlanIsShownBeforeLoadingAndRefusesWhatDoesNotFit) {
  EngineOptions options = test_options("gpt-oss-random", "bf16");
  std::vector<std::string> order;
  options.on_plan = [&](const std::string& plan) {
    order.push_back("plan");
    for (const char* word : {"weights", "KV cache", "workspace", "logits", "total"}) {
      EXPECT_NE(plan.find(word), std::string::npos) << plan;
    }
  };
  options.on_load_progress = [&](int64_t done, int64_t total) {
    EXPECT_LE(done, total);
    if (order.back() != "progress") order.push_back("progress");
  };
  Engine::create(options);
  EXPECT_EQ(order, (std::vector<std::string>{"plan", "progress"}));
  options.max_model_len = 131072;
  options.kv_cache_bytes = 1 << 20;
  try {
    Engine::create(options);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("does not fit"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace briar

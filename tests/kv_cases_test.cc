// Cases of the users' reports about scheduling and the KV cache (group K), by id.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "engine_harness.h"

namespace briar {
namespace {

std::vector<int32_t> ids(int n, int seed) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) out.push_back((i * i * 11 + seed * 57 + i) % 512);
  return out;
}

EngineOptions options(const std::function<void(EngineOptions&)>& change = {}) {
  EngineOptions o = test_options("gpt-oss-random", "bf16");
  o.max_model_len = 2048;
  o.chunk = 64;
  if (change) change(o);
  return o;
}

Request request(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request r = scoring_request(prompt, max_tokens);
  r.wants_prompt_logprobs = false;
  return r;
}

Collected cold(Request r) {
  const auto engine = Engine::create(options());
  return std::move(run_all(*engine, {std::move(r)})[0]);
}

TEST(KvCases, K01_PreemptedRequestsGiveTheSameAnswers) {
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(request(ids(30, i), 200));
  EngineOptions tight = options([](EngineOptions& o) {
    o.max_model_len = 256;
    o.kv_cache_bytes = 1200 << 10;  // about three of them
  });
  const auto engine = Engine::create(tight);
  const auto crowd = run_all(*engine, requests);
  EXPECT_GT(engine->stats().num_preemptions, 0u);
  const auto roomy = Engine::create(options([](EngineOptions& o) { o.caches_prefixes = false; }));
  for (size_t i = 0; i < requests.size(); ++i) {
    expect_same_bits(crowd[i], run_all(*roomy, {requests[i]})[0], "request " + std::to_string(i));
  }
}

TEST(KvCases, K03_BetterPriorityStartsFirstAndTheOthersFinish) {
  const auto engine = Engine::create(options([](EngineOptions& o) { o.max_seqs = 15; }));
  std::mutex mutex;
  std::map<int, int> tokens_by_request;
  std::vector<int> ends;
  std::atomic<int> num_running{0};
  const auto submit = [&](int number, int priority) {
    Request r = request(ids(20, number), 60);
    r.priority = priority;
    r.on_output = [&, number](const Output& o) {
      std::lock_guard lock(mutex);
      int& count = tokens_by_request[number];
      if (count == 0 && !o.tokens.empty()) ++num_running;
      count += static_cast<int>(o.tokens.size());
      if (o.finish_reason != FinishReason::kNone) ends.push_back(number);
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(r)).ok());
  };
  for (int i = 0; i < 15; ++i) submit(i, 0);
  while (num_running < 15) std::this_thread::yield();
  for (int i = 15; i < 20; ++i) submit(i, -100);
  engine->drain();
  ASSERT_EQ(ends.size(), 20u);
  for (const auto& [number, count] : tokens_by_request) EXPECT_EQ(count, 60) << number;
  EXPECT_GE(engine->stats().num_preemptions, 5u) << "they took places";
  // Those five were preempted, so they end last: behind all of the late ones.
  std::vector<int> last(ends.end() - 5, ends.end());
  for (const int number : last) EXPECT_LT(number, 15);
}

TEST(KvCases, K05_TheSamePrefixFiveTimes) {
  const Request r = request(ids(1500, 3), 20);
  const Collected reference = cold(r);
  const auto engine = Engine::create(options());
  for (int i = 0; i < 5; ++i) {
    expect_same_bits(run_all(*engine, {r})[0], reference, "run " + std::to_string(i));
  }
  EXPECT_GE(engine->stats().num_cached_tokens, 4u * 1480u);
}

TEST(KvCases, K07_AnotherQuestionBehindALongPrefixWithAWrappedWindow) {
  const auto engine = Engine::create(options());
  std::vector<int32_t> a = ids(700, 1), b = a;
  const std::vector<int32_t> question_a = ids(30, 2), question_b = ids(37, 4);
  a.insert(a.end(), question_a.begin(), question_a.end());
  b.insert(b.end(), question_b.begin(), question_b.end());
  run_all(*engine, {request(a, 300)});  // the window has moved far beyond the prefix
  const Collected warm = run_all(*engine, {request(b, 40)})[0];
  EXPECT_GT(engine->stats().num_cached_tokens, 0u);
  expect_same_bits(warm, cold(request(b, 40)), "question B");
}

TEST(KvCases, K09_BalanceIsExactAtPageEdges) {
  for (const int page_size : {16, 64}) {
    const auto engine = Engine::create(options([&](EngineOptions& o) { o.page_size = page_size; }));
    for (int wave = 0; wave < 3; ++wave) {
      std::vector<Request> requests;
      for (const int edge : {-1, 0, 1}) {
        for (const int pages : {1, 2, 3}) {
          requests.push_back(request(ids(page_size * pages + edge, wave), 3 + edge));
        }
      }
      run_all(*engine, std::move(requests));
      const EngineStats stats = engine->stats();
      EXPECT_EQ(stats.num_free_pages, stats.num_pages) << "wave " << wave;
    }
  }
}

TEST(KvCases, K11_TooLittleMemoryNamesWhatFits) {
  try {
    Engine::create(options([](EngineOptions& o) {
      o.max_model_len = 4096;
      o.kv_cache_bytes = 1 << 20;
    }));
    FAIL() << "accepted";
  } catch (const UserError& e) {
    for (const char* word : {"needs", "free", "--max-model-len", "4096"}) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  }
  // Without a wish it takes the longest that fits.
  const auto engine = Engine::create(options([](EngineOptions& o) {
    o.max_model_len = 0;
    o.kv_cache_bytes = 1 << 20;
  }));
  EXPECT_GT(engine->model().max_model_len, 100);
  EXPECT_LT(engine->model().max_model_len, 4096);
}

TEST(KvCases, K13_CancelFreesPagesWithinASecond) {
  const auto engine = Engine::create(options());
  std::atomic<uint64_t> id{0};
  std::atomic<int> num_tokens{0};
  Request r = request(ids(20, 1), 2000);
  r.on_output = [&](const Output& o) {
    id = o.request_id;
    num_tokens += static_cast<int>(o.tokens.size());
    return true;
  };
  ASSERT_TRUE(engine->submit(std::move(r)).ok());
  while (num_tokens < 10) std::this_thread::yield();
  engine->cancel(id);
  const auto begin = std::chrono::steady_clock::now();
  while (engine->stats().num_running > 0) std::this_thread::yield();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(engine->stats().num_free_pages, engine->stats().num_pages);
  EXPECT_LT(num_tokens, 2000);
}

TEST(KvCases, K15_ACancelledConversationStaysCached) {
  const auto engine = Engine::create(options());
  std::vector<int32_t> conversation = ids(800, 6);
  std::vector<int32_t> partial;
  Request r = request(conversation, 400);
  r.on_output = [&](const Output& o) {
    for (const OutputToken& t : o.tokens) partial.push_back(t.token_id);
    if (partial.size() >= 100) engine->cancel(o.request_id);
    return true;
  };
  ASSERT_TRUE(engine->submit(std::move(r)).ok());
  engine->drain();
  conversation.insert(conversation.end(), partial.begin(), partial.end());
  const std::vector<int32_t> next = ids(15, 8);
  conversation.insert(conversation.end(), next.begin(), next.end());
  const Collected again = run_all(*engine, {request(conversation, 10)})[0];
  EXPECT_GE(engine->stats().num_cached_tokens, 880u) << "the prompt and the partial reply";
  expect_same_bits(again, cold(request(conversation, 10)), "the next turn");
}

TEST(KvCases, K17_FortyGrowingRequestsAlwaysAdvance) {
  const auto engine = Engine::create(options([](EngineOptions& o) {
    o.max_model_len = 300;
    o.kv_cache_bytes = 1 << 20;
  }));
  std::atomic<int64_t> num_tokens{0}, num_ends{0};
  for (int i = 0; i < 40; ++i) {
    Request r = request(ids(10, i), 150);
    r.on_output = [&](const Output& o) {
      num_tokens += static_cast<int64_t>(o.tokens.size());
      num_ends += o.finish_reason == FinishReason::kLength ? 1 : 0;
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(r)).ok());
  }
  while (num_ends < 40) {
    const int64_t before = num_tokens;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ASSERT_TRUE(num_tokens > before || num_ends == 40) << "a second without a token";
  }
  EXPECT_EQ(num_tokens, 40 * 150);
  EXPECT_GT(engine->stats().num_preemptions, 0u);
}

}  // namespace
}  // namespace briar

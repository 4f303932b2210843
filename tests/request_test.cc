// What a request may ask of the engine beyond tokens: how they are drawn, when to end, how its
// output is read, what else it gets. Cases of the users' reports carry their ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "briar/output_queue.h"
#include "engine_harness.h"

namespace briar {
namespace {

std::vector<int32_t> ids(int n, int seed) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) out.push_back((i * i * 7 + seed * 131 + i) % 512);
  return out;
}

class RequestTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Engine> make_engine(const std::function<void(EngineOptions&)>& change = {}) {
    EngineOptions options = test_options("gpt-oss-random", "bf16");
    options.overlaps = GetParam();
    options.max_model_len = 2048;
    options.chunk = 64;
    if (change) change(options);
    return Engine::create(options);
  }
  static Request request(int64_t max_tokens, int seed = 1) {
    Request r = scoring_request(ids(20, seed), max_tokens);
    r.wants_prompt_logprobs = false;
    return r;
  }
  static Collected run(Engine& engine, Request r) {
    return std::move(run_all(engine, {std::move(r)})[0]);
  }
};
INSTANTIATE_TEST_SUITE_P(Overlap, RequestTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "on" : "off"; });

TEST_P(RequestTest, PenaltiesChangeWhatIsDrawnAndNotTheLogprobs) {
  const auto engine = make_engine();
  const Collected plain = run(*engine, request(40));
  Request r = request(40);
  r.sampling.presence_penalty = 100;
  const Collected presence = run(*engine, r);
  EXPECT_EQ(std::set<int32_t>(presence.tokens.begin(), presence.tokens.end()).size(), 40u)
      << "no token twice";
  EXPECT_EQ(presence.tokens[0], plain.tokens[0]) << "the prompt does not count";
  EXPECT_EQ(presence.logprobs[0], plain.logprobs[0]);
  r = request(40);
  r.sampling.frequency_penalty = -100;  // whatever came first comes again
  EXPECT_EQ(run(*engine, r).tokens, std::vector<int32_t>(40, plain.tokens[0]));
  r = request(40);
  r.sampling.repetition_penalty = 100;
  const Collected repetition = run(*engine, r);
  const std::vector<int32_t> prompt = ids(20, 1);
  for (const int32_t t : repetition.tokens) {
    EXPECT_EQ(std::count(prompt.begin(), prompt.end(), t), 0) << "of the prompt: " << t;
  }
}

TEST_P(RequestTest, PenaltiesSurvivePreemption) {
  const auto draw = [&](bool is_tight) {
    const auto engine = make_engine([&](EngineOptions& o) {
      o.page_size = 1;
      o.max_model_len = 160;
      if (is_tight) o.kv_cache_bytes = 560 << 10;
    });
    std::vector<Request> requests;
    for (int i = 0; i < 9; ++i) {
      requests.push_back(request(60, i));
      requests.back().sampling.frequency_penalty = 0.7f;
      requests.back().sampling.repetition_penalty = 1.2f;
    }
    auto all = run_all(*engine, std::move(requests));
    EXPECT_EQ(engine->stats().num_preemptions > 0, is_tight);
    return all;
  };
  const auto roomy = draw(false), tight = draw(true);
  for (size_t i = 0; i < roomy.size(); ++i) {
    expect_same_bits(roomy[i], tight[i], "request " + std::to_string(i));
  }
}

TEST_P(RequestTest, BiasAndAllowedIds) {
  const auto engine = make_engine();
  Request r = request(10);
  r.sampling.logit_bias = {{77, 100}, {5, -100}};
  EXPECT_EQ(run(*engine, r).tokens, std::vector<int32_t>(10, 77));
  r = request(50);
  r.sampling.temperature = 3;
  r.sampling.allowed_token_ids = {3, 4, 500};
  const Collected allowed = run(*engine, r);
  const std::set<int32_t> drawn(allowed.tokens.begin(), allowed.tokens.end());
  EXPECT_EQ(drawn, (std::set<int32_t>{3, 4, 500}));
  for (const float logprob : allowed.logprobs) EXPECT_TRUE(std::isfinite(logprob));
}

// users.md S03, the engine's half: ids and values out of range are refused, a neighbour goes on.
TEST_P(RequestTest, S03_BadBiasesAreRefusedAndAStreamGoesOn) {
  const auto engine = make_engine();
  std::atomic<int> num_tokens{0};
  Request stream = request(200);
  stream.on_output = [&](const Output& o) {
    num_tokens += static_cast<int>(o.tokens.size());
    return true;
  };
  ASSERT_TRUE(engine->submit(std::move(stream)).ok());
  for (const LogitBias bad : {LogitBias{999999999, 1}, LogitBias{-1, 1}, LogitBias{3, NAN},
                              LogitBias{3, 1e9f}, LogitBias{512, 1}}) {
    Request r = request(1);
    r.sampling.logit_bias = {bad};
    const auto id = engine->submit(std::move(r));
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.error().http_status, 400);
    EXPECT_EQ(id.error().param, "logit_bias");
  }
  engine->drain();
  EXPECT_EQ(num_tokens, 200);
}

// users.md S09.
TEST_P(RequestTest, S09_NoStopIdBeforeMinTokens) {
  const auto engine = make_engine();
  for (const int32_t favourite : {10, 20, 30}) {
    Request r = request(20);
    r.stop_token_ids = {10, 20, 30};
    r.sampling.logit_bias = {{favourite, 100}};
    r.sampling.min_tokens = 8;
    const Collected c = run(*engine, r);
    ASSERT_EQ(c.tokens.size(), 9u);
    EXPECT_EQ(c.tokens.back(), favourite);
    EXPECT_EQ(c.finish_reason, FinishReason::kStop);
    for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(c.tokens[i] % 10 != 0 || c.tokens[i] > 30);
  }
}

// users.md S07, the engine's half: what ends an answer counts from min_tokens on.
TEST_P(RequestTest, S07_StopsAfterIsHeededFromMinTokensOn) {
  const auto engine = make_engine();
  Request r = request(40);
  r.sampling.min_tokens = 20;
  int num_seen = 0;
  r.stops_after = [&](int32_t) {
    ++num_seen;
    return true;
  };
  const Collected c = run(*engine, r);
  EXPECT_EQ(c.tokens.size(), 20u);
  EXPECT_EQ(num_seen, 20) << "it sees every token";
  EXPECT_EQ(c.finish_reason, FinishReason::kStop);
}

// Allows a fixed sequence of ids and then ends.
class Script final : public TokenConstraint {
 public:
  Script(std::vector<int32_t> script, std::vector<int32_t>* accepted)
      : script_(std::move(script)), accepted_(accepted) {}
  void fill_mask(std::span<uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), 0);
    if (at_ == script_.size()) return;
    const auto id = static_cast<uint32_t>(script_[at_]);
    mask[id / 32] |= 1u << id % 32;
  }
  void accept(int32_t token_id) override {
    accepted_->push_back(token_id);
    ++at_;
  }

 private:
  std::vector<int32_t> script_;
  std::vector<int32_t>* accepted_;
  size_t at_ = 0;
};

TEST_P(RequestTest, AConstraintDecidesWhatIsDrawn) {
  const auto engine = make_engine();
  const Collected free_alone = run(*engine, request(12, 9));
  const std::vector<int32_t> script{511, 0, 31, 32, 64, 7};
  std::vector<std::vector<int32_t>> accepted(4);
  std::vector<Request> requests;
  for (size_t i = 0; i < accepted.size(); ++i) {
    requests.push_back(request(20, static_cast<int>(i)));
    requests.back().stop_token_ids = {7};
    requests.back().sampling.min_tokens = 15;  // the constraint knows better
    requests.back().constraint = std::make_shared<Script>(script, &accepted[i]);
  }
  requests.push_back(request(12, 9));
  const auto all = run_all(*engine, std::move(requests));
  for (size_t i = 0; i < accepted.size(); ++i) {
    EXPECT_EQ(all[i].tokens, script);
    EXPECT_EQ(accepted[i], script);
    EXPECT_EQ(all[i].finish_reason, FinishReason::kStop);
  }
  expect_same_bits(all.back(), free_alone, "the neighbour without a constraint");
}

TEST_P(RequestTest, AConstraintThatAllowsNothingIsAnErrorOfThatRequestAlone) {
  const auto engine = make_engine();
  std::vector<int32_t> accepted;
  Request r = request(20);
  r.constraint = std::make_shared<Script>(std::vector<int32_t>{1, 2}, &accepted);
  const auto all = run_all(*engine, {r, request(5)});
  EXPECT_EQ(all[0].finish_reason, FinishReason::kError);
  EXPECT_NE(all[0].error.find("no token may come next"), std::string::npos) << all[0].error;
  EXPECT_EQ(all[0].tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(all[1].tokens.size(), 5u);
}

// users.md V10, without drafts: what comes behind an end is not in the answer, nor in the cache.
TEST_P(RequestTest, V10_NothingBehindTheEndIsSeenOrCached) {
  const auto engine = make_engine([](EngineOptions& o) { o.page_size = 4; });
  const Collected whole = run(*engine, request(30));
  Request r = request(30);
  r.stop_token_ids = {whole.tokens[9]};
  const auto end = std::find(whole.tokens.begin(), whole.tokens.end(), whole.tokens[9]) + 1;
  const Collected stopped = run(*engine, r);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(whole.tokens.begin(), end));
  // A conversation that goes on elsewhere must not find the moot token.
  r = request(4);
  r.prompt.insert(r.prompt.end(), stopped.tokens.begin(), stopped.tokens.end());
  r.prompt.insert(r.prompt.end(), {1, 2, 3, 4, 5});
  const auto cold = make_engine();
  expect_same_bits(run(*engine, r), run(*cold, r), "after the stop");
}

TEST_P(RequestTest, ADeadlineEndsWaitingAndRunningRequests) {
  const auto engine = make_engine([](EngineOptions& o) { o.max_seqs = 1; });
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Request> requests{request(2000), request(2000)};
  for (Request& r : requests) r.deadline = begin + std::chrono::milliseconds(150);
  const auto all = run_all(*engine, std::move(requests));
  EXPECT_EQ(all[0].finish_reason, FinishReason::kDeadline);
  EXPECT_EQ(all[1].finish_reason, FinishReason::kDeadline);
  EXPECT_GT(all[0].tokens.size(), 0u);
  EXPECT_EQ(all[1].tokens.size(), 0u);
}

TEST_P(RequestTest, ASlowReaderIsCancelledAndTheOthersAreNot) {
  const auto engine = make_engine();
  const auto slow = std::make_shared<OutputQueue>(10), quick = std::make_shared<OutputQueue>(10);
  for (const auto& queue : {slow, quick}) {
    Request r = request(100);
    r.on_output = [queue](Output o) { return queue->push(std::move(o)); };
    ASSERT_TRUE(engine->submit(std::move(r)).ok());
  }
  size_t num_read = 0;
  FinishReason last = FinishReason::kNone;
  while (auto output = quick->pop()) {
    num_read += output->tokens.size();
    last = output->finish_reason;
  }
  EXPECT_EQ(num_read, 100u);
  EXPECT_EQ(last, FinishReason::kLength);
  engine->drain();
  const auto rest = slow->pop();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->tokens.size(), 10u);
  EXPECT_EQ(rest->finish_reason, FinishReason::kCancelled);
  EXPECT_NE(rest->error.find("took no more"), std::string::npos);
  EXPECT_FALSE(slow->pop());
}

TEST(OutputQueueTest, MergesWhatWaitsAndWakesOnce) {
  int num_ready = 0;
  OutputQueue queue(3, [&] { ++num_ready; });
  const auto output = [](int32_t id, FinishReason reason = FinishReason::kNone) {
    Output o;
    o.tokens.push_back({.token_id = id});
    o.finish_reason = reason;
    return o;
  };
  EXPECT_FALSE(queue.try_pop());
  EXPECT_TRUE(queue.push(output(1)) && queue.push(output(2)) && queue.push(output(3)));
  EXPECT_FALSE(queue.push(output(4)));
  EXPECT_TRUE(queue.push(output(5, FinishReason::kStop))) << "an end is always taken";
  EXPECT_EQ(num_ready, 1);
  const auto all = queue.pop();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->tokens.size(), 4u);
  EXPECT_EQ(all->finish_reason, FinishReason::kStop);
  EXPECT_FALSE(queue.pop());
  OutputQueue left(3);
  left.close();
  EXPECT_FALSE(left.push(output(1)));
  EXPECT_FALSE(left.pop());
}

TEST_P(RequestTest, AFullQueueRefuses) {
  const auto engine = make_engine([](EngineOptions& o) {
    o.max_seqs = 1;
    o.max_waiting = 2;
  });
  int num_refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto id = engine->submit(request(50));
    if (id.ok()) continue;
    EXPECT_EQ(id.error().http_status, 429);
    ++num_refused;
  }
  EXPECT_GE(num_refused, 16);
  engine->drain();
  EXPECT_TRUE(engine->submit(request(1)).ok());
}

TEST_P(RequestTest, HiddenStatesOfEveryTokenThatRan) {
  const auto hidden_of = [&](const std::function<void(EngineOptions&)>& change, bool competes) {
    const auto engine = make_engine(change);
    std::vector<float> hidden;
    Request r = request(12);
    r.prompt = ids(100, 3);
    r.wants_hidden_states = true;
    r.on_output = [&](const Output& o) {
      hidden.insert(hidden.end(), o.hidden_states.begin(), o.hidden_states.end());
      return true;
    };
    const auto submit = [&](Request x) { ASSERT_TRUE(engine->submit(std::move(x)).ok()); };
    submit(std::move(r));
    for (int i = 0; competes && i < 5; ++i) submit(request(60, i));
    engine->drain();
    EXPECT_EQ(hidden.size(), (100u + 11u) * static_cast<size_t>(engine->model().hidden_size));
    return hidden;
  };
  const auto whole = hidden_of([](EngineOptions& o) { o.chunk = 512; }, false);
  EXPECT_EQ(whole, hidden_of([](EngineOptions& o) { o.chunk = 7; }, false));
  EXPECT_EQ(whole, hidden_of(
                       [](EngineOptions& o) {
                         o.page_size = 1;
                         o.max_model_len = 160;
                         o.kv_cache_bytes = 560 << 10;
                       },
                       true));
  EXPECT_GT(*std::max_element(whole.begin(), whole.end()), 0.1f);
}

TEST_P(RequestTest, KeptKvIsTakenUpAndLetGo) {
  for (const bool caches : {true, false}) {
    const auto engine = make_engine([&](EngineOptions& o) { o.caches_prefixes = caches; });
    std::shared_ptr<const KvHandle> kv;
    Request prefill = request(0);
    prefill.prompt = ids(300, 5);
    prefill.keeps_kv = true;
    prefill.on_output = [&](Output o) {
      kv = o.kv;
      return true;
    };
    ASSERT_TRUE(engine->submit(prefill).ok());
    engine->drain();
    ASSERT_TRUE(kv);
    EXPECT_EQ(kv->num_tokens(), 288) << "the full pages of 16";
    EXPECT_LT(engine->stats().num_free_pages, engine->stats().num_pages);
    Request go_on = request(12);
    go_on.prompt = ids(300, 5);
    go_on.kv = kv;
    std::atomic<int64_t> num_cached{0};
    Collected from_kv;
    go_on.on_output = [&](const Output& o) {
      num_cached = o.num_cached_tokens;
      for (const OutputToken& t : o.tokens) from_kv.tokens.push_back(t.token_id);
      return true;
    };
    ASSERT_TRUE(engine->submit(go_on).ok());
    engine->drain();
    EXPECT_EQ(num_cached, 288);
    Request cold = request(12);
    cold.prompt = ids(300, 5);
    cold.cache_salt = "another";
    EXPECT_EQ(from_kv.tokens, run(*engine, cold).tokens);
    go_on = {}, kv.reset();
    run(*engine, request(1));  // the handle's release has been read by now
    EXPECT_EQ(engine->stats().num_free_pages, engine->stats().num_pages);
  }
}

TEST_P(RequestTest, KeptKvGivesWayUnderPressureAndOutlivesItsEngine) {
  std::vector<std::shared_ptr<const KvHandle>> handles;
  {
    const auto engine = make_engine([](EngineOptions& o) {
      o.max_model_len = 400;
      o.kv_cache_bytes = 1 << 20;
    });
    for (int i = 0; i < 10; ++i) {  // far more than there are pages for
      Request r = request(2, i);
      r.prompt = ids(300, i);
      r.keeps_kv = true;
      r.on_output = [&](Output o) {
        if (o.kv) handles.push_back(o.kv);
        return true;
      };
      ASSERT_TRUE(engine->submit(std::move(r)).ok());
      engine->drain();
    }
    EXPECT_EQ(handles.size(), 10u);
    EXPECT_EQ(engine->stats().num_preemptions, 0u);
    Request r = request(5);
    r.prompt = ids(300, 0);
    r.kv = handles[0];  // its pages are long gone
    EXPECT_EQ(run(*engine, r).tokens.size(), 5u);
  }
  handles.clear();
}

}  // namespace
}  // namespace briar

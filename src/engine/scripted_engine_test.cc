#include "engine/scripted_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <mutex>

#include "briar/output_queue.h"

namespace briar {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<Engine> make(std::vector<ScriptLine> lines, bool is_loop = false) {
  return make_scripted_engine({.lines = std::move(lines),
                               .is_loop = is_loop,
                               .model = {.vocab_size = 100, .max_model_len = 1000}});
}

struct Answer {
  std::vector<int32_t> ids = {};
  std::vector<OutputToken> tokens = {};
  FinishReason reason = FinishReason::kNone;
  std::string error = {};
};

// Submits and reads until the end.
Answer ask(Engine& engine, Request request) {
  auto queue = std::make_shared<OutputQueue>(100000);
  request.prompt = {1};
  request.on_output = [queue](Output output) { return queue->push(std::move(output)); };
  Answer answer;
  const auto id = engine.submit(std::move(request));
  if (!id) return {.reason = FinishReason::kError, .error = id.error().message};
  while (auto output = queue->pop()) {
    for (const OutputToken& t : output->tokens) {
      answer.ids.push_back(t.token_id);
      answer.tokens.push_back(t);
    }
    answer.reason = output->finish_reason;
    answer.error = output->error;
    if (answer.reason != FinishReason::kNone) break;
  }
  return answer;
}

using Ids = std::vector<int32_t>;

TEST(ScriptedEngine, TheNthRequestGetsTheNthLine) {
  const auto engine = make({{.tokens = {1, 2, 9, 3}}, {.tokens = {4, 5}}, {.tokens = {}}});
  const Answer first = ask(*engine, {.stop_token_ids = {9}});
  EXPECT_EQ(first.ids, (Ids{1, 2, 9}));
  EXPECT_EQ(first.reason, FinishReason::kStop);
  const Answer second = ask(*engine, {.stop_token_ids = {9}});
  EXPECT_EQ(second.ids, (Ids{4, 5}));
  EXPECT_EQ(second.reason, FinishReason::kLength);
  EXPECT_EQ(ask(*engine, {}).reason, FinishReason::kLength);
  EXPECT_EQ(ask(*engine, {}).error, "the script's 3 lines are used up");
}

TEST(ScriptedEngine, EndsWhereTheRequestSays) {
  const auto engine = make({{.tokens = {1, 2, 3}}}, true);
  const Answer cut = ask(*engine, {.max_tokens = 7});
  EXPECT_EQ(cut.ids, (Ids{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(cut.reason, FinishReason::kLength);
  EXPECT_TRUE(ask(*engine, {.max_tokens = 0}).ids.empty());
  int seen = 0;
  const Answer stopped =
      ask(*engine, {.max_tokens = 100, .stops_after = [&](int32_t) { return ++seen == 5; }});
  EXPECT_EQ(stopped.ids.size(), 5u);
  EXPECT_EQ(stopped.reason, FinishReason::kStop);
  const auto slow = make({{.tokens = {1}, .delay_us = 5000}}, true);
  const Answer late = ask(
      *slow, {.max_tokens = 900, .deadline = std::chrono::steady_clock::now() + milliseconds(50)});
  EXPECT_EQ(late.reason, FinishReason::kDeadline);
  EXPECT_LE(late.ids.size(), 11u);
}

TEST(ScriptedEngine, CancelAndSlowReadersEndARequest) {
  const auto engine = make({{.tokens = {1}, .delay_us = 1000}}, true);
  auto queue = std::make_shared<OutputQueue>(100000);
  const auto id = engine->submit({.prompt = {1}, .max_tokens = 900, .on_output = [queue](Output o) {
                                    return queue->push(std::move(o));
                                  }});
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(queue->pop());
  engine->cancel(*id);
  FinishReason reason = FinishReason::kNone;
  while (auto output = queue->pop()) {
    reason = output->finish_reason;
    if (reason != FinishReason::kNone) break;
  }
  EXPECT_EQ(reason, FinishReason::kCancelled);
  std::vector<Output> outputs;
  ASSERT_TRUE(engine
                  ->submit({.prompt = {1},
                            .max_tokens = 900,
                            .on_output =
                                [&](Output o) {
                                  outputs.push_back(std::move(o));
                                  return outputs.size() < 3;
                                }})
                  .ok());
  engine->drain();
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(outputs.back().finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(engine->stats().num_running, 0);
}

TEST(ScriptedEngine, RefusesWhatItCannotDo) {
  const auto engine = make({{.tokens = {1}}}, true);
  EXPECT_FALSE(engine->submit({.prompt = {}}).ok());
  EXPECT_FALSE(engine->submit({.prompt = {1}, .wants_prompt_logprobs = true}).ok());
  EXPECT_FALSE(engine->submit({.prompt = Ids(1000, 1)}).ok());
}

TEST(ScriptedEngine, ReadsScripts) {
  const std::string path = testing::TempDir() + "scripted_engine_test.jsonl";
  std::ofstream(path)
      << R"({"tokens": [1, 2], "logprobs": [-0.5, [[3, -0.1], [2, null]]], "delay_us": 7})"
      << "\n\n"
      << R"({"tokens": []})";
  const auto lines = read_script(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].tokens, (Ids{1, 2}));
  EXPECT_EQ(lines[0].delay_us, 7);
  const Answer answer = ask(*make(lines), {.num_top_logprobs = 1});
  ASSERT_EQ(answer.tokens.size(), 2u);
  EXPECT_FLOAT_EQ(answer.tokens[0].logprob, -0.5f);
  EXPECT_TRUE(std::isinf(answer.tokens[1].logprob));
  EXPECT_EQ(answer.tokens[1].top[0].token_id, 3);
  for (const char* bad :
       {"{}", "[1]", R"({"tokens": [-1]})", R"({"tokens": ["a"]})",
        R"({"tokens": [1], "logprobs": []})", R"({"tokens": [1], "delay_us": -1})",
        R"({"tokens": [1], "logprobs": ["x"]})", ""}) {
    std::ofstream(path) << bad;
    EXPECT_THROW(read_script(path), UserError) << bad;
  }
}

}  // namespace
}  // namespace briar

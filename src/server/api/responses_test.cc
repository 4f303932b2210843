// The Responses API over recorded token sequences. Case names are those of users' reports.
#include <gtest/gtest.h>

#include <thread>

#include "server/api/response_store.h"
#include "server/api/test_support.h"

namespace briar {
namespace {

const std::string kPath = "/v1/responses";
const std::string kAnswer =
    "<|channel|>analysis<|message|>think hard<|end|><|start|>assistant<|channel|>final<|message|>"
    "It is 4<|return|>";
const std::string kCall =
    "<|channel|>analysis<|message|>I call<|end|><|start|>assistant to=functions.get_w<|channel|>"
    "commentary <|constrain|>json<|message|>{\"c\":\"Rome\"}<|call|>";
const std::string kTools =
    R"("tools":[{"type":"function","name":"get_w","parameters":{"type":"object","properties":
    {"c":{"type":"string"}}}}])";

std::vector<std::string> event_types(const RecordedReply& reply) {
  std::vector<std::string> types;
  int64_t number = 0;
  for (const auto& [event, data] : reply.events) {
    EXPECT_EQ(text_at(data, "/type"), event);
    EXPECT_EQ(at(data, "/sequence_number"), std::to_string(number++));
    if (types.empty() || types.back() != event) types.push_back(event);  // deltas once
  }
  return types;
}

TEST(Responses, R07R11EventsInOrder) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":"What is 2+2?","stream":true})");
  EXPECT_EQ(
      event_types(*reply),
      (std::vector<std::string>{
          "response.created", "response.in_progress", "response.output_item.added",
          "response.content_part.added", "response.reasoning_text.delta",
          "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
          "response.output_item.added", "response.content_part.added", "response.output_text.delta",
          "response.output_text.done", "response.content_part.done", "response.output_item.done",
          "response.completed"}));
  const std::string& last = reply->events.back().second;
  EXPECT_EQ(text_at(last, "/response/status"), "completed");
  EXPECT_EQ(text_at(last, "/response/output/0/content/0/type"), "reasoning_text");
  EXPECT_EQ(text_at(last, "/response/output/0/content/0/text"), "think hard");
  EXPECT_EQ(text_at(last, "/response/output/1/content/0/text"), "It is 4");
  std::string text;
  for (const auto& [event, data] : reply->events) {
    if (event == "response.output_text.delta") text += text_at(data, "/delta");
    if (event != "response.output_text.done") continue;
    EXPECT_EQ(text_at(data, "/text"), "It is 4");
  }
  EXPECT_EQ(text, "It is 4");
}

TEST(Responses, R05CallArgumentsAreStreamed) {
  RecordedEngine engine(ids_of(kCall));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":"w?","stream":true,)" + kTools + "}");
  const std::vector<std::string> types = event_types(*reply);
  const std::vector<std::string> tail(types.end() - 5, types.end());
  EXPECT_EQ(tail, (std::vector<std::string>{"response.output_item.added",
                                            "response.function_call_arguments.delta",
                                            "response.function_call_arguments.done",
                                            "response.output_item.done", "response.completed"}));
  std::string arguments;
  std::string item;
  for (const auto& [event, data] : reply->events) {
    if (event == "response.function_call_arguments.delta") arguments += text_at(data, "/delta");
    if (event == "response.output_item.done") item = at(data, "/item");
  }
  EXPECT_EQ(arguments, "{\"c\":\"Rome\"}");
  EXPECT_EQ(item, at(reply->events.back().second, "/response/output/1"));
  EXPECT_EQ(text_at(item, "/name"), "get_w");
}

TEST(Responses, R01LengthIsIncomplete) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":"What is 2+2?","max_output_tokens":1})");
  EXPECT_EQ(text_at(reply->body, "/status"), "incomplete") << reply->body;
  EXPECT_EQ(text_at(reply->body, "/incomplete_details/reason"), "max_output_tokens");
  EXPECT_EQ(at(reply->body, "/usage/output_tokens"), "1");
}

TEST(Responses, R03OldReasoningIsLeftOut) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const std::string secret =
      R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"SECRET"}]})";
  const auto prompt_of = [&](const std::string& items) {
    EXPECT_EQ(call(api, "POST", kPath, R"({"input":[)" + items + "]," + kTools + "}")->status, 200);
    return tokenizer()->decode(engine.requests.back().prompt);
  };
  const std::string user = R"({"role":"user","content":"hi"})";
  EXPECT_EQ(prompt_of(user + "," + secret + R"(,{"role":"assistant","content":"yes"},)" + user)
                .find("SECRET"),
            std::string::npos);
  EXPECT_NE(prompt_of(user + "," + secret +
                      R"(,{"type":"function_call","call_id":"c1","name":"get_w","arguments":"{}"},
                      {"type":"function_call_output","call_id":"c1","output":"rain"})")
                .find("SECRET"),
            std::string::npos);
}

TEST(Responses, R09ReplayedItemsNeedNoIds) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":[{"role":"user","content":"a"},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},
      {"role":"user","content":[{"type":"input_text","text":"c"}]}]})");
  EXPECT_EQ(reply->status, 200) << reply->body;
}

TEST(Responses, ConversationsGoOnFromStoredResponses) {
  RecordedEngine engine(ids_of(kCall));
  const OpenAiApi api(config_of(engine));
  const auto first = call(api, "POST", kPath, R"({"input":"w?",)" + kTools + "}");
  const std::string id = text_at(first->body, "/id");
  const std::string call_id = text_at(first->body, "/output/1/call_id");
  EXPECT_EQ(call(api, "GET", kPath + "/" + id)->body, first->body);
  const std::string follow =
      R"({"previous_response_id":")" + id +
      R"(","input":[{"type":"function_call_output","output":"rain","call_id":")";
  EXPECT_EQ(call(api, "POST", kPath, follow + "nobody\"}]}")->status, 400);
  EXPECT_EQ(call(api, "POST", kPath, follow + call_id + "\"}]}")->status, 200);
  const std::string prompt = tokenizer()->decode(engine.requests.back().prompt);
  EXPECT_NE(prompt.find("<|message|>I call<|end|>"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("functions.get_w to=assistant<|channel|>commentary<|message|>rain"),
            std::string::npos)
      << prompt;
  EXPECT_EQ(at(call(api, "DELETE", kPath + "/" + id)->body, "/deleted"), "true");
  EXPECT_EQ(call(api, "GET", kPath + "/" + id)->status, 404);
  const auto gone = call(api, "POST", kPath, follow + call_id + "\"}]}");
  EXPECT_EQ(gone->status, 400);
  EXPECT_EQ(text_at(gone->body, "/error/param"), "previous_response_id");
}

TEST(Responses, UnstoredOnesAreForgotten) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":"x","store":false})");
  EXPECT_EQ(call(api, "GET", kPath + "/" + text_at(reply->body, "/id"))->status, 404);
}

TEST(Responses, BackgroundIsPolled) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kPath, R"({"input":"x","background":true})");
  EXPECT_EQ(text_at(reply->body, "/status"), "in_progress") << reply->body;
  const std::string id = text_at(reply->body, "/id");
  std::string body;
  for (int i = 0; i < 500 && text_at(body, "/status") != "completed"; ++i) {
    body = call(api, "GET", kPath + "/" + id)->body;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(text_at(body, "/output/1/content/0/text"), "It is 4") << body;
  EXPECT_EQ(text_at(call(api, "POST", kPath + "/" + id + "/cancel")->body, "/status"), "completed");
  EXPECT_EQ(call(api, "POST", kPath + "/resp_none/cancel")->status, 404);
}

TEST(Responses, BackgroundIsCancelled) {
  RecordedEngine engine({});
  engine.never_ends = true;
  const OpenAiApi api(config_of(engine));
  const std::string id =
      text_at(call(api, "POST", kPath, R"({"input":"x","background":true})")->body, "/id");
  EXPECT_EQ(text_at(call(api, "POST", kPath + "/" + id + "/cancel")->body, "/status"), "cancelled");
  EXPECT_EQ(engine.cancelled, std::vector<uint64_t>{1});
  EXPECT_EQ(text_at(call(api, "GET", kPath + "/" + id)->body, "/status"), "cancelled");
}

TEST(Responses, Faults) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":[{"type":"image"}]})", "input[0].type"},
      {R"({"input":"x","previous_response_id":"resp_none"})", "previous_response_id"},
      {R"({"input":"x","background":true,"store":false})", "background"},
      {R"({"input":"x","background":true,"stream":true})", "background"},
      {R"({"input":"x","truncation":"some"})", "truncation"},
      {R"({"input":"x","reasoning":{"effort":"HIGH"}})", "reasoning.effort"},
      {R"({"input":"x","metadata":{"a":5}})", "metadata"},
      {R"({"input":"x","text":{"format":{"type":"yaml"}}})", "text.format.type"}};
  for (const auto& [body, param] : cases) {
    const auto reply = call(api, "POST", kPath, body);
    EXPECT_EQ(reply->status, 400) << body;
    EXPECT_EQ(text_at(reply->body, "/error/param"), param) << reply->body;
  }
}

TEST(ResponseStore, IsBounded) {
  ApiLimits limits;
  limits.max_stored_responses = 3;
  ResponseStore by_number(limits);
  for (int i = 0; i < 5; ++i)
    by_number.put("r" + std::to_string(i), {.json = "{}", .conversation = {}});
  EXPECT_EQ(by_number.size(), 3u);
  EXPECT_FALSE(by_number.json("r1"));
  EXPECT_TRUE(by_number.json("r2"));
  limits.max_stored_responses = 1000;
  limits.max_stored_bytes = 10000;
  ResponseStore by_bytes(limits);
  by_bytes.put("running", {.json = "{}", .conversation = {}, .is_in_progress = true});
  for (int i = 0; i < 20; ++i) {
    by_bytes.put("r" + std::to_string(i), {.json = std::string(2000, 'x'), .conversation = {}});
  }
  EXPECT_LE(by_bytes.size(), 5u);
  EXPECT_TRUE(by_bytes.json("running"));
  limits.stored_response_seconds = 0;
  ResponseStore by_age(limits);
  by_age.put("r", {.json = "{}", .conversation = {}});
  EXPECT_EQ(by_age.size(), 0u);
}

}  // namespace
}  // namespace briar

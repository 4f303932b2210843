// The endpoints over the real engine and tiny-harmony, and over recorded token sequences.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/registry.h"
#include "server/api/test_support.h"
#include "tokenizer/tokenizer.h"

namespace briar {
namespace {

const std::string kChat = "/v1/chat/completions";
const std::string kHi = R"("messages":[{"role":"user","content":"hi"}])";
const std::string kWeather =
    R"("tools":[{"type":"function","function":{"name":"get_w","parameters":{"type":"object",
    "properties":{"c":{"type":"string"}}}}}])";

std::string chat_body(const std::string& fields = "") {
  return "{" + kHi + (fields.empty() ? "" : "," + fields) + "}";
}

// All of one streamed choice, put together the way clients do.
struct Streamed {
  std::string content, reasoning, arguments, tool_name, finish_reason;
  int num_calls = 0;
  bool is_done = false;
};
Streamed put_together(const RecordedReply& reply) {
  Streamed all;
  for (const auto& [event, data] : reply.events) {
    if (data == "[DONE]") {
      all.is_done = true;
      continue;
    }
    const std::string call = "/choices/0/delta/tool_calls/0/";
    all.content += text_at(data, "/choices/0/delta/content");
    all.reasoning += text_at(data, "/choices/0/delta/reasoning_content");
    all.arguments += text_at(data, call + "function/arguments");
    all.tool_name += text_at(data, call + "function/name");
    if (!text_at(data, call + "id").empty()) ++all.num_calls;
    all.finish_reason += text_at(data, "/choices/0/finish_reason");
  }
  return all;
}

struct ChatCase {
  const char* name;
  std::string tokens;
  std::string fields;
  std::string content, reasoning, arguments, finish_reason;
};

const std::vector<ChatCase> kChatCases = {
    {"H01OneWordTooMany",
     "<|channel|>analysis --commentary<|message|>think<|end|><|start|>assistant<|channel|>final"
     "<|message|>Hello<|return|>",
     "", "Hello", "think", "", "stop"},
    {"H03StrayText",
     "<|channel|>final<|message|>A<|end|>comment<|start|>assistant<|channel|>final<|message|>B"
     "<|return|>",
     "", "AB", "", "", "stop"},
    {"H09ExtraTerminators", "<|channel|>final<|message|>Answer<|end|><|return|>",
     R"("ignore_eos":true,"max_tokens":512)", "Answer", "", "", "length"},
    {"H11Call",
     "<|channel|>analysis<|message|>r<|end|><|start|>assistant<|channel|>commentary to=functions."
     "get_w <|constrain|>json<|message|>{\"c\":\"Rome\"}<|call|>",
     kWeather, "", "r", "{\"c\":\"Rome\"}", "tool_calls"},
    {"H19EndInAHeader",
     "<|channel|>analysis<|message|>r<|end|><|start|>assistant<|channel|>final<|return|>", "", "",
     "r", "", "length"},
    {"H23NoMarkers", "{\"a\":1}<|return|>", "", "{\"a\":1}", "", "", "stop"},
    {"H27CutArguments", "<|channel|>commentary to=functions.get_w<|message|>{\"a\": <|call|>",
     kWeather, "", "", "{\"a\": ", "tool_calls"},
    {"H33WordsOfTheFormat",
     "<|channel|>final<|message|>analysis of assistantfinal and commentary<|return|>", "",
     "analysis of assistantfinal and commentary", "", "", "stop"},
    {"H35PreambleAndCall",
     "<|channel|>commentary<|message|>Plan: 1, 2<|end|><|start|>assistant to=functions.get_w"
     "<|channel|>commentary<|message|>{}<|call|>",
     kWeather, "Plan: 1, 2", "", "{}", "tool_calls"},
    {"S21StopWithinATokenAndAcross", "<|channel|>final<|message|>ABCDEFGH<|return|>",
     R"("stop":"DE")", "ABC", "", "", "stop"},
    {"StopIncluded", "<|channel|>final<|message|>ABCDEFGH<|return|>",
     R"("stop":"DE","include_stop_str_in_output":true)", "ABCDE", "", "", "stop"},
    {"StopNotInReasoning",
     "<|channel|>analysis<|message|>say DE<|end|><|start|>assistant<|channel|>final<|message|>"
     "ABC<|return|>",
     R"("stop":["DE","x"])", "ABC", "say DE", "", "stop"},
    {"S07MinTokens", "<|channel|>final<|message|>\na\nb\nc\nd\ne<|return|>",
     R"("stop":["\n"],"min_tokens":7)", "\na\nb", "", "", "stop"},
    {"H41OneToken", "<|channel|>analysis<|message|>think<|end|>", R"("max_tokens":1)", "", "", "",
     "length"},
    {"H41FourTokens", "<|channel|>analysis<|message|>think<|end|>", R"("max_tokens":4)", "",
     "think", "", "length"},
};

class ChatCases : public testing::TestWithParam<size_t> {};

TEST_P(ChatCases, StreamedAndWholeAgree) {
  const ChatCase& c = kChatCases[GetParam()];
  RecordedEngine engine(ids_of(c.tokens));
  const OpenAiApi api(config_of(engine));
  const auto whole = call(api, "POST", kChat, chat_body(c.fields));
  ASSERT_EQ(whole->status, 200) << whole->body;
  const std::string message = "/choices/0/message/";
  EXPECT_EQ(text_at(whole->body, message + "content"), c.content) << whole->body;
  EXPECT_EQ(text_at(whole->body, message + "reasoning_content"), c.reasoning) << whole->body;
  EXPECT_EQ(text_at(whole->body, message + "reasoning"), c.reasoning);
  EXPECT_EQ(text_at(whole->body, message + "tool_calls/0/function/arguments"), c.arguments);
  EXPECT_EQ(text_at(whole->body, "/choices/0/finish_reason"), c.finish_reason) << whole->body;
  EXPECT_EQ(at(whole->body, message + "content") == "null",
            c.content.empty() && !c.arguments.empty());

  const auto stream = call(
      api, "POST", kChat, chat_body((c.fields.empty() ? "" : c.fields + ",") + R"("stream":true)"));
  const Streamed all = put_together(*stream);
  EXPECT_EQ(all.content, c.content);
  EXPECT_EQ(all.reasoning, c.reasoning);
  EXPECT_EQ(all.arguments, c.arguments);
  EXPECT_EQ(all.num_calls, c.arguments.empty() ? 0 : 1);
  EXPECT_EQ(all.finish_reason, c.finish_reason);
  EXPECT_TRUE(all.is_done);
}

INSTANTIATE_TEST_SUITE_P(UsersReports, ChatCases, testing::Range<size_t>(0, kChatCases.size()),
                         [](const auto& info) { return kChatCases[info.param].name; });

const std::string kAnswer =
    "<|channel|>analysis<|message|>one two<|end|><|start|>assistant<|channel|>final<|message|>"
    "Hello world<|return|>";

TEST(Chat, X17Usage) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto stream =
      call(api, "POST", kChat,
           chat_body(R"("stream":true,"n":2,"stream_options":{"include_usage":true})"));
  ASSERT_GE(stream->events.size(), 3u);
  EXPECT_EQ(stream->events.back().second, "[DONE]");
  const std::string& last = stream->events[stream->events.size() - 2].second;
  EXPECT_EQ(at(last, "/choices"), "[]");
  const auto num_tokens = ids_of(kAnswer).size();
  EXPECT_EQ(at(last, "/usage/completion_tokens"), std::to_string(2 * num_tokens));
  EXPECT_EQ(at(last, "/usage/completion_tokens_details/reasoning_tokens"), "4");
  for (size_t i = 0; i + 2 < stream->events.size(); ++i) {
    EXPECT_EQ(at(stream->events[i].second, "/usage"), "null");
  }
  const auto plain = call(api, "POST", kChat, chat_body(R"("stream":true)"));
  for (const auto& [event, data] : plain->events)
    EXPECT_EQ(at(data, "/usage").find("{"), std::string::npos);
}

TEST(Chat, ClientGoneCancels) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  auto reply = std::make_shared<RecordedReply>();
  reply->max_events = 3;
  HttpRequest request;
  request.body = chat_body(R"("stream":true)");
  handler_of(api, "POST", kChat)(std::move(request), reply);
  EXPECT_FALSE(reply->run(std::chrono::milliseconds(10)));
  EXPECT_EQ(reply->events.size(), 3u);
  EXPECT_EQ(engine.cancelled, std::vector<uint64_t>{1});
}

TEST(Chat, ClosedConnectionCancels) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  auto reply = std::make_shared<RecordedReply>();
  HttpRequest request;
  request.body = chat_body(R"("n":2)");
  handler_of(api, "POST", kChat)(std::move(request), reply);
  reply->close();
  EXPECT_FALSE(reply->run(std::chrono::milliseconds(10)));
  EXPECT_EQ(engine.cancelled, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(reply->status, 0);
}

TEST(Chat, FullQueueIs429) {
  RecordedEngine engine(ids_of(kAnswer));
  engine.is_full = true;
  const OpenAiApi api(config_of(engine));
  for (const char* fields : {"", R"("stream":true)"}) {
    const auto reply = call(api, "POST", kChat, chat_body(fields));
    EXPECT_EQ(reply->status, 429);
    EXPECT_EQ(text_at(reply->body, "/error/type"), "rate_limit_error");
    ASSERT_FALSE(reply->headers.empty());
    EXPECT_EQ(reply->headers[0].first, "Retry-After");
  }
}

TEST(Chat, UnknownModelIs404) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kChat, chat_body(R"("model":"gpt-9")"));
  EXPECT_EQ(reply->status, 404);
  EXPECT_EQ(text_at(reply->body, "/error/code"), "model_not_found");
  EXPECT_EQ(call(api, "GET", "/v1/models/gpt-9")->status, 404);
  EXPECT_EQ(text_at(call(api, "GET", "/v1/models/tiny")->body, "/id"), "tiny");
  EXPECT_EQ(text_at(call(api, "GET", "/v1/models")->body, "/data/0/id"), "tiny");
}

TEST(Chat, S15S01LogprobsAreFinite) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kChat, chat_body(R"("logprobs":true)"));
  EXPECT_EQ(at(reply->body, "/choices/0/logprobs/content/0/token"), "\"Hello\"");
  EXPECT_EQ(at(reply->body, "/choices/0/logprobs/content/0/top_logprobs"), "[]");
  EXPECT_EQ(at(reply->body, "/choices/0/logprobs/content/0/logprob"), "-9999");
  EXPECT_EQ(at(reply->body, "/choices/0/logprobs/content/2"), "");
}

TEST(Chat, UnknownFieldsAreTold) {
  RecordedEngine engine(ids_of(kAnswer));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kChat, chat_body(R"("zebra":1)"));
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->headers, (HttpHeaders{{"X-Briar-Ignored-Fields", "zebra"}}));
}

TEST(Chat, ContinuesTheLastMessage) {
  RecordedEngine engine(ids_of(" world<|return|>"));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", kChat, R"({"messages":[{"role":"user","content":"hi"},
      {"role":"assistant","content":"Hello"}],"continue_final_message":true})");
  EXPECT_EQ(text_at(reply->body, "/choices/0/message/content"), " world") << reply->body;
  const std::string prompt = tokenizer()->decode(engine.requests[0].prompt);
  EXPECT_TRUE(prompt.ends_with("<|start|>assistant<|channel|>final<|message|>Hello")) << prompt;
}

TEST(Completion, EchoLogprobsAndBestOf) {
  RecordedEngine engine(ids_of(" world and more"));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", "/v1/completions",
                          R"({"prompt":"Hello","echo":true,"logprobs":0,"max_tokens":1,"n":2})");
  ASSERT_EQ(reply->status, 200) << reply->body;
  EXPECT_EQ(text_at(reply->body, "/choices/1/text"), "Hello world");
  EXPECT_EQ(at(reply->body, "/choices/1/logprobs/tokens"), R"(["Hello"," world"])");
  EXPECT_EQ(at(reply->body, "/choices/1/logprobs/token_logprobs"), "[null,-9999]");
  EXPECT_EQ(at(reply->body, "/choices/1/logprobs/text_offset"), "[0,5]");
  EXPECT_EQ(at(reply->body, "/usage/prompt_tokens"), "1");
  const auto best = call(api, "POST", "/v1/completions", R"({"prompt":"Hello","best_of":3})");
  EXPECT_EQ(at(best->body, "/choices/1"), "");
  EXPECT_EQ(at(best->body, "/usage/completion_tokens"), "9");
}

TEST(Completion, ContextLength) {
  RecordedEngine engine(ids_of("x"));
  const OpenAiApi api(config_of(engine));
  std::string prompt;
  for (int i = 0; i < 5000; ++i) prompt += " a";
  const auto reply = call(api, "POST", "/v1/completions", R"({"prompt":")" + prompt + R"("})");
  EXPECT_EQ(reply->status, 400);
  EXPECT_EQ(text_at(reply->body, "/error/code"), "context_length_exceeded");
  const auto cut = call(api, "POST", "/v1/completions",
                        R"({"truncate_prompt_tokens":10,"prompt":")" + prompt + R"("})");
  EXPECT_EQ(at(cut->body, "/usage/prompt_tokens"), "10");
}

TEST(Tokenize, T01TextIsNeverStructure) {
  RecordedEngine engine(ids_of("x"));
  const OpenAiApi api(config_of(engine));
  const auto reply = call(api, "POST", "/tokenize", R"({"prompt":"<|start|>system<|message|>x"})");
  const boost::json::value json = boost::json::parse(reply->body);
  for (const auto& id : json.at("tokens").as_array()) EXPECT_LT(id.to_number<int>(), 199998);
  const auto back = call(api, "POST", "/detokenize",
                         R"({"tokens":)" + boost::json::serialize(json.at("tokens")) + "}");
  EXPECT_EQ(text_at(back->body, "/prompt"), "<|start|>system<|message|>x");
  const auto shown = call(api, "POST", kChat + "/render", chat_body());
  EXPECT_TRUE(text_at(shown->body, "/prompt").ends_with("<|start|>assistant")) << shown->body;
}

}  // namespace
}  // namespace briar

// Bodies and what is wrong with them. Case names are those of the list of users' reports.
#include "server/api/parse.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "server/api/error_json.h"

namespace briar {
namespace {

const ParseContext kContext{.limits = {}, .num_token_ids = 201088};

std::string chat(const std::string& fields) {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}])" +
         (fields.empty() ? "" : "," + fields) + "}";
}
std::string completion(const std::string& fields) {
  return R"({"model":"m","prompt":"hi")" + (fields.empty() ? "" : "," + fields) + "}";
}

// The parameter at fault; "ok" if there is none.
std::string chat_fault(const std::string& body) {
  const auto parsed = parse_chat_request(body, kContext);
  if (parsed) return "ok";
  EXPECT_EQ(parsed.error().http_status, 400);
  boost::json::error_code code;
  boost::json::parse(error_json(parsed.error()), code);
  EXPECT_FALSE(code) << error_json(parsed.error());
  return parsed.error().param.empty() ? parsed.error().message : parsed.error().param;
}
std::string completion_fault(const std::string& body) {
  const auto parsed = parse_completion_request(body, kContext);
  return parsed                         ? "ok"
         : parsed.error().param.empty() ? parsed.error().message
                                        : parsed.error().param;
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

struct Case {
  std::string fields;
  std::string fault;
};

void expect_chat(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(chat_fault(chat(c.fields)), c.fault) << c.fields;
}
void expect_completion(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(completion_fault(completion(c.fields)), c.fault) << c.fields;
  }
}

TEST(Parse, S03LogitBias) {
  const std::vector<Case> cases = {{R"("logit_bias":{"999999999":1})", "logit_bias"},
                                   {R"("logit_bias":{"-1":1})", "logit_bias"},
                                   {R"("logit_bias":{"abc":1})", "logit_bias"},
                                   {R"("logit_bias":{"1e3":1})", "logit_bias"},
                                   {R"("logit_bias":{"5":1e9})", "logit_bias"},
                                   {R"("logit_bias":{"5":"1"})", "logit_bias"},
                                   {R"("logit_bias":[5])", "logit_bias"},
                                   {R"("logit_bias":{"5":-100,"6":2.5})", "ok"}};
  expect_chat(cases);
  expect_completion(cases);
  EXPECT_NE(chat_fault(chat(R"("logit_bias":{"5":NaN})")), "ok");
}

TEST(Parse, S11WrongTypes) {
  const std::vector<Case> cases = {
      {R"("top_k":0.01)", "top_k"},
      {R"("top_k":"5")", "top_k"},
      {R"("top_k":true)", "top_k"},
      {R"("top_k":null)", "ok"},
      {R"("temperature":"hot")", "temperature"},
      {R"("temperature":1e999)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":2.1)", "temperature"},
      {R"("max_tokens":1.5)", "max_tokens"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("seed":1.5)", "seed"},
      {R"("seed":18446744073709551616)", "seed"},
      {R"("seed":-5)", "ok"},
      {R"("stream":"yes")", "stream"},
      {R"("stop_token_ids":[-1])", "stop_token_ids"},
      {R"("allowed_token_ids":[])", "allowed_token_ids"},
      {R"("min_tokens":5,"max_tokens":4)", "min_tokens"},
      {R"("stream_options":{"include_usage":true})", "stream_options"}};
  for (const Case& c : cases) {
    const bool is_overflow = c.fields.find("1e999") != std::string::npos;
    if (!is_overflow) {
      EXPECT_EQ(chat_fault(chat(c.fields)), c.fault) << c.fields;
      EXPECT_EQ(completion_fault(completion(c.fields)), c.fault) << c.fields;
    } else {
      EXPECT_NE(chat_fault(chat(c.fields)), "ok");
    }
  }
}

TEST(Parse, S15Logprobs) {
  expect_chat({{R"("logprobs":true)", "ok"},
               {R"("top_logprobs":5)", "top_logprobs"},
               {R"("logprobs":false,"top_logprobs":5)", "top_logprobs"},
               {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
               {R"("logprobs":true,"top_logprobs":20)", "ok"}});
  expect_completion({{R"("logprobs":0)", "ok"}, {R"("logprobs":21)", "logprobs"}});
  EXPECT_EQ(
      parse_chat_request(chat(R"("logprobs":true)"), kContext)->request.params.num_top_logprobs, 0);
}

TEST(Parse, S19BestOf) {
  expect_completion({{R"("n":2,"best_of":2)", "ok"},
                     {R"("n":2,"best_of":1)", "best_of"},
                     {R"("best_of":3,"stream":true)", "best_of"},
                     {R"("best_of":1,"stream":true)", "ok"}});
}

TEST(Parse, S23Bounds) {
  std::string many = R"("stop":["a")";
  for (int i = 0; i < 500000; ++i) many += R"(,"a")";
  std::string words = R"("bad_words":["a")";
  for (int i = 0; i < 199; ++i) words += R"(,"a")";
  expect_chat({{R"("stop":["a","b","c","d"])", "ok"},
               {R"("stop":"a")", "ok"},
               {R"("stop":["a","b","c","d","e"])", "stop"},
               {many + "]", "stop"},
               {R"("stop":["a",""])", "stop"},
               {R"("stop":"")", "stop"},
               {R"("stop":[5])", "stop"},
               {R"("stop":")" + std::string(1 << 20, 'x') + "\"", "stop"},
               {words + "]", "bad_words"}});
}

TEST(Parse, X01X03Depth) {
  for (const int depth : {3000, 200000}) {
    EXPECT_NE(chat_fault(chat("\"tools\":" + nested(depth))), "ok");
    EXPECT_NE(chat_fault(chat("\"ignored\":" + nested(depth))), "ok");
    EXPECT_EQ(chat_fault(chat("\"ignored\":\"" + nested(depth) + "\"")), "ok");
  }
  for (const int depth : {50, 99, 10000, 100000}) {
    const std::string field = "\"ignored\":" + nested(depth);
    EXPECT_EQ(chat_fault(chat(field)) == "ok", depth == 50);
    EXPECT_EQ(completion_fault(completion(field)) == "ok", depth == 50);
  }
}

TEST(Parse, X05Malformed) {
  const std::string good = chat("");
  const std::vector<std::string> bodies = {
      "",
      "[]",
      "\xEF\xBB\xBF" + good,
      good + "x",
      good + good,
      R"({"messages":[{"role":"user","content":"hi"},]})",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\xC3\x28\"}]}",
      R"({"messages":[{"role":"user","content":"\ud800"}]})",
      std::string("{\"messages\":\0[]}", 16),
      std::string("{\0\"\0a\0", 6)};
  for (const std::string& body : bodies) {
    const std::string fault = chat_fault(body);
    EXPECT_NE(fault, "ok") << body;
    EXPECT_EQ(fault.find("\xC3\x28"), std::string::npos);
  }
}

TEST(Parse, X09Counts) {
  std::string prompts = R"({"prompt":["a")";
  for (int i = 0; i < 9999; ++i) prompts += R"(,"a")";
  EXPECT_EQ(completion_fault(prompts + "]}"), "prompt");
  expect_completion({{R"("n":1000000000)", "n"},
                     {R"("best_of":1000000000)", "best_of"},
                     {R"("prompt_logprobs":201088)", "prompt_logprobs"}});
  EXPECT_EQ(completion_fault(R"({"prompt":["a","b"],"n":100})"), "n");
}

TEST(Parse, X11MalformedSchemas) {
  const auto tool = [](const std::string& schema) {
    return R"("tools":[{"type":"function","function":{"name":"f","parameters":)" + schema + "}}]";
  };
  const std::string path = "tools[0].function.parameters";
  expect_chat({{tool(R"({"type":"object","properties":{"a":{"type":"strnig"}}})"), path},
               {tool(R"({"type":"object","properties":{"a":{"pattern":"(["}}})"), path},
               {tool(R"({"properties":{"a":{"minimum":"x"}}})"), path},
               {tool(R"({"properties":{"a":{"enum":[]}}})"), path},
               {tool(R"({"required":5})"), path},
               {tool(R"({"type":"object","properties":{"a":{"description":"x"},"c":{"type":[]}}})"),
                "ok"}});
  const auto parsed =
      parse_chat_request(chat(tool(R"({"properties":{"a":{"type":"strnig"}}})")), kContext);
  EXPECT_NE(parsed.error().message.find("parameters.properties.a.type"), std::string::npos)
      << parsed.error().message;
}

TEST(Parse, X13PromptEmbeds) {
  expect_completion({{R"("prompt_embeds":"AAAA")", "prompt_embeds"}});
  expect_chat({{R"("prompt_embeds":"AAAA")", "prompt_embeds"}});
}

TEST(Parse, H15UnknownCallId) {
  EXPECT_EQ(chat_fault(R"({"messages":[{"role":"user","content":"x"},
      {"role":"tool","tool_call_id":"c9","content":"y"}]})"),
            "messages[1].tool_call_id");
}

TEST(Parse, H15ResultsAreNamedAfterTheirCalls) {
  const auto parsed = parse_chat_request(R"({"messages":[{"role":"user","content":"x"},
      {"role":"assistant","reasoning":"R1","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"alpha","arguments":"{}"}},
        {"id":"c2","type":"function","function":{"name":"beta","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c2","content":"2"},
      {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"1"}]}]})",
                                         kContext);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const std::vector<Message>& messages = parsed->request.prompt.messages;
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[1].channel, "analysis");
  EXPECT_EQ(message_text(messages[1]), "R1");
  EXPECT_EQ(messages[4].name, "functions.beta");
  EXPECT_EQ(messages[5].name, "functions.alpha");
  EXPECT_EQ(message_text(messages[5]), "1");
}

TEST(Parse, H29ToolNames) {
  const auto named = [](const std::string& name) {
    return R"("tools":[{"type":"function","function":{"name":")" + name + R"("}}])";
  };
  expect_chat({{named("my-tool"), "ok"},
               {named("my_tool"), "ok"},
               {named("a.b"), "ok"},
               {named("my tool"), "tools[0].function.name"},
               {named(""), "tools[0].function.name"}});
}

TEST(Parse, H39ReasoningEffort) {
  const auto effort = [](const std::string& word) {
    const auto parsed = parse_chat_request(chat("\"reasoning_effort\":\"" + word + "\""), kContext);
    return parsed ? static_cast<int>(parsed->request.prompt.reasoning_effort) : -1;
  };
  EXPECT_EQ(effort("low"), static_cast<int>(ReasoningEffort::kLow));
  EXPECT_EQ(effort("minimal"), static_cast<int>(ReasoningEffort::kLow));
  EXPECT_EQ(effort("none"), static_cast<int>(ReasoningEffort::kLow));
  EXPECT_EQ(effort("medium"), static_cast<int>(ReasoningEffort::kMedium));
  EXPECT_EQ(effort("high"), static_cast<int>(ReasoningEffort::kHigh));
  EXPECT_EQ(effort("xhigh"), static_cast<int>(ReasoningEffort::kHigh));
  EXPECT_EQ(effort("HIGH"), -1);
  expect_chat({{R"("reasoning_effort":3)", "reasoning_effort"},
               {R"("reasoning_effort":null)", "ok"},
               {R"("chat_template_kwargs":{"reasoning_effort":"HIGH"})",
                "chat_template_kwargs.reasoning_effort"}});
}

TEST(Parse, ToolSelection) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  expect_chat(
      {{R"("tool_choice":"required")", "tool_choice"},
       {R"("tool_choice":"none")", "ok"},
       {tools + R"("tool_choice":"required")", "ok"},
       {tools + R"("tool_choice":"maybe")", "tool_choice"},
       {tools + R"("tool_choice":{"type":"function","function":{"name":"f"}})", "ok"},
       {tools + R"("tool_choice":{"type":"function","function":{"name":"g"}})", "tool_choice"}});
}

TEST(Parse, AnswerShapes) {
  expect_chat(
      {{R"("response_format":{"type":"text"})", "ok"},
       {R"("response_format":{"type":"json_object"})", "ok"},
       {R"("response_format":{"type":"yaml"})", "response_format.type"},
       {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
       {R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":5}}})",
        "response_format.json_schema.schema"},
       {R"("regex":"a+")", "ok"},
       {R"("regex":"a+","ebnf":"root ::= \"a\"")", "ebnf"},
       {R"("structured_outputs":{"choice":["a","b"]})", "ok"}});
}

TEST(Parse, CompletionsHaveNoShape) {
  expect_completion({{R"("response_format":{"type":"text"})", "ok"},
                     {R"("response_format":{"type":"json_object"})", "response_format"},
                     {R"("regex":"a+")", "response_format"}});
}

TEST(Parse, UnknownFieldsAreNoted) {
  const auto parsed = parse_chat_request(chat(R"("zebra":1,"user":"me","stop":null)"), kContext);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ignored, std::vector<std::string>{"zebra"});
}

TEST(Parse, DuplicateKeysKeepTheLast) {
  const auto parsed = parse_chat_request(chat(R"("top_k":5,"top_k":7)"), kContext);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->request.params.top_k, 7);
}

TEST(ErrorJson, NeverEchoesBrokenText) {
  const std::string json =
      error_json({.message = "a\xC3\x28" + std::string(100000, 'x'), .param = "p\xFF"});
  boost::json::error_code code;
  boost::json::parse(json, code);
  EXPECT_FALSE(code);
  EXPECT_LT(json.size(), 3000u);
}

}  // namespace
}  // namespace briar

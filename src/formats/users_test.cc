// What users of other engines reported, group H: the inputs and the right behaviour.
#include <algorithm>

#include "formats/harmony_test_support.h"
#include "formats/message.h"

namespace briar {
namespace {

constexpr int32_t kReturn = 200002;
constexpr int32_t kConstrain = 200003;
constexpr int32_t kEnd = 200007;
constexpr int32_t kCall = 200012;

using Calls = std::vector<std::pair<std::string, std::string>>;

std::vector<int32_t> concat(std::initializer_list<std::vector<int32_t>> parts) {
  std::vector<int32_t> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::vector<int32_t> plain(std::string_view text) { return format_test::tokenizer()->encode(text); }

PromptRequest request_with(std::vector<Message> messages) {
  PromptRequest request;
  request.messages = std::move(messages);
  request.date = "2025-06-28";
  return request;
}

std::vector<int32_t> prompt_ids(const PromptRequest& request) {
  auto ids = harmony()->render_prompt(request);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return *ids;
}

std::string prompt_text(const PromptRequest& request) {
  return harmony()->text_of(prompt_ids(request));
}

ToolDefinition tool(std::string name, std::string_view schema = {}) {
  ToolDefinition definition{.name = std::move(name), .description = "", .parameters = {}};
  if (!schema.empty()) {
    definition.parameters =
        std::make_shared<const boost::json::value>(*json::parse(schema, "test"));
  }
  return definition;
}

TEST(Users, H01_ExtraWordInHeader) {
  const Answer answer = parse(
      "<|channel|>analysis --commentary<|message|>think<|end|><|start|>assistant<|channel|>final"
      "<|message|>Hello<|return|>");
  EXPECT_EQ(answer.reasoning, "think");
  EXPECT_EQ(answer.content, "Hello");
  EXPECT_EQ(answer.warnings.total(), 1);
  EXPECT_TRUE(answer.is_complete);
}

TEST(Users, H03_TextBetweenMessages) {
  const Answer answer = parse(
      "<|channel|>final<|message|>A<|end|>comment<|start|>assistant<|channel|>final<|message|>B"
      "<|return|>");
  EXPECT_EQ(answer.content, "AB");
  ASSERT_EQ(answer.messages.size(), 2u);
  EXPECT_EQ(answer.warnings.skipped_tokens, 1);
}

TEST(Users, H05_BadByteInBody) {
  const auto byte_ff = [] {
    for (int32_t id = 0; id < 256; ++id) {
      if (format_test::tokenizer()->token_bytes(id) == "\xFF") return id;
    }
    return -1;
  }();
  ASSERT_GE(byte_ff, 0);
  const Answer answer = parse(concat({structured("<|channel|>final<|message|>"),
                                      plain("ab"),
                                      {byte_ff},
                                      plain("cd"),
                                      structured("<|end|><|start|>assistant<|channel|>final"
                                                 "<|message|>next<|return|>")}));
  std::vector<std::string> texts;
  for (const Delta& delta : answer.deltas) texts.push_back(delta.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"ab", "\xEF\xBF\xBD", "cd", "next"}));
  EXPECT_EQ(message_text(answer.messages.at(0).message),
            "ab\xEF\xBF\xBD"
            "cd");
  EXPECT_EQ(message_text(answer.messages.at(1).message), "next");
}

TEST(Users, H07_ConstrainIsAToken) {
  const std::vector<int32_t> ids = prompt_ids(request_with(
      {text_message(Role::kUser, "say <|constrain|> and <|call|>"), tool_call_message("f", "{}")}));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kConstrain), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kCall), 1);
  const auto constrain = std::find(ids.begin(), ids.end(), kConstrain);
  EXPECT_LT(constrain, std::find(ids.begin(), ids.end(), kCall));
}

TEST(Users, H09_RedundantTerminator) {
  const Answer answer = parse("<|channel|>final<|message|>Answer<|end|><|return|><|return|>");
  EXPECT_EQ(answer.content, "Answer");
  EXPECT_EQ(answer.messages.size(), 1u);
  EXPECT_EQ(answer.warnings.total(), 0);
  EXPECT_TRUE(answer.is_complete);
}

TEST(Users, H11_StreamedToolCall) {
  const Answer answer = parse(
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.get_w <|constrain|>json<|message|>{\"c\":\"Rome\"}<|call|>",
      {.role = Role::kAssistant, .tool_names = {"get_w"}});
  EXPECT_EQ(answer.reasoning, "hm");
  EXPECT_EQ(answer.content, "");
  EXPECT_EQ(answer.calls, (Calls{{"get_w", "{\"c\":\"Rome\"}"}}));
  const auto first = std::find_if(answer.deltas.begin(), answer.deltas.end(),
                                  [](const Delta& d) { return d.kind == Delta::Kind::kToolCall; });
  ASSERT_NE(first, answer.deltas.end());
  EXPECT_EQ(first->tool_call_idx, 0);
  EXPECT_EQ(first->tool_name, "get_w");
  EXPECT_EQ(first->text, "");
  // The arguments come in pieces, not at the end.
  EXPECT_GT(answer.deltas.end() - first, 3);
}

TEST(Users, H13_ReasoningBeforeToolCall) {
  PromptRequest request =
      request_with({text_message(Role::kUser, "q"), reasoning_message("R1"),
                    tool_call_message("f", "{}"), tool_result_message("f", "1")});
  const std::string text = prompt_text(request);
  EXPECT_NE(text.find("<|start|>assistant<|channel|>analysis<|message|>R1<|end|>"
                      "<|start|>assistant to=functions.f<|channel|>commentary "
                      "<|constrain|>json<|message|>{}<|call|>"),
            text.npos)
      << text;
}

TEST(Users, H15_ToolResultsAndPlainReply) {
  const std::string text =
      prompt_text(request_with({text_message(Role::kUser, "q"), tool_call_message("alpha", "{}"),
                                tool_call_message("beta", "{}"), tool_result_message("beta", "b"),
                                tool_result_message("alpha", "a"), answer_message("done")}));
  EXPECT_NE(
      text.find("<|start|>functions.beta to=assistant<|channel|>commentary<|message|>b<|end|>"
                "<|start|>functions.alpha to=assistant<|channel|>commentary<|message|>a<|end|>"
                "<|start|>assistant<|channel|>final<|message|>done<|end|>"),
      text.npos)
      << text;
}

TEST(Users, H19_EndInsideHeader) {
  const std::string_view text =
      "<|channel|>analysis<|message|>because<|end|><|start|>assistant<|channel|>final";
  for (const std::string_view end : {"", "<|return|>", "<|end|>"}) {
    const Answer answer = parse(std::string(text) + std::string(end));
    EXPECT_EQ(answer.reasoning, "because");
    EXPECT_EQ(answer.content, "");
    EXPECT_FALSE(answer.is_complete) << end;
  }
  for (const std::string_view cut : {" to", " to=functions", " to=functions.f<|constrain|>js"}) {
    const Answer answer = parse(std::string(text) + std::string(cut));
    EXPECT_EQ(answer.content, "") << cut;
    EXPECT_FALSE(answer.is_complete);
  }
}

TEST(Users, H21_RecipientIsTheAssistant) {
  for (const std::string_view header :
       {"<|start|>assistant to=assistant<|channel|>analysis", " to=assistant<|channel|>analysis",
        "<|channel|>commentary to=assistant<|channel|>analysis"}) {
    const Answer answer = parse(std::string(header) + "<|message|>{\"command\":\"./t\"}<|call|>",
                                {.role = Role::kAssistant, .tool_names = {"exec"}});
    EXPECT_TRUE(answer.calls.empty());
    EXPECT_EQ(answer.reasoning, "{\"command\":\"./t\"}") << header;
    EXPECT_EQ(answer.content, "");
    EXPECT_EQ(answer.messages.at(0).message.recipient, "assistant");
  }
}

TEST(Users, H23_NoMarkersAtAll) {
  const Answer answer = parse(concat({plain("{\"a\":1}"), {kReturn}}));
  EXPECT_EQ(answer.content, "{\"a\":1}");
  EXPECT_TRUE(answer.is_complete);
  const std::string long_text =
      "  First line\n\n- a \xE2\x9C\x93\n" + std::string(3000, 'x') + " \n";
  EXPECT_EQ(parse(concat({plain(long_text), {kReturn}})).content, long_text);
}

TEST(Users, H25_GluedContentType) {
  const auto name_of = [](std::string_view recipient, std::vector<std::string> tools) {
    const Answer answer =
        parse("<|channel|>commentary to=" + std::string(recipient) + "<|message|>{}<|call|>",
              {.role = Role::kAssistant, .tool_names = std::move(tools)});
    return answer.calls.size() == 1 ? answer.calls[0].first : "(no call)";
  };
  EXPECT_EQ(name_of("functions.shelljson", {"shell"}), "shell");
  EXPECT_EQ(name_of("functions.shell<|constrain|>json", {"shell"}), "shell");
  EXPECT_EQ(name_of("functions.shelljson", {"shell", "shelljson"}), "shelljson");
  EXPECT_EQ(name_of("shell", {"shell"}), "shell");
}

TEST(Users, H27_BrokenArgumentsPassThrough) {
  const Answer answer = parse("<|channel|>commentary to=functions.f<|message|>{\"a\":<|call|>",
                              {.role = Role::kAssistant, .tool_names = {"f"}});
  EXPECT_EQ(answer.calls, (Calls{{"f", "{\"a\":"}}));
}

TEST(Users, H29_ToolNames) {
  PromptRequest request = request_with({text_message(Role::kUser, "q")});
  request.tools = {tool("my-tool"), tool("my_tool"), tool("a.b")};
  const std::string text = prompt_text(request);
  for (const std::string name : {"my-tool", "my_tool", "a.b"}) {
    EXPECT_NE(text.find("type " + name + " = () => any;"), text.npos);
    const Answer answer =
        parse("<|channel|>commentary to=functions." + name + "<|message|>{}<|call|>",
              {.role = Role::kAssistant, .tool_names = {"my-tool", "my_tool", "a.b"}});
    EXPECT_EQ(answer.calls, (Calls{{name, "{}"}}));
  }
  for (const std::string bad : {"my tool", "", "f()", "a\nb"}) {
    request.tools = {tool(bad)};
    const auto ids = harmony()->render_prompt(request);
    ASSERT_FALSE(ids.ok()) << bad;
    EXPECT_EQ(ids.error().http_status, 400);
    EXPECT_EQ(ids.error().param, "tools");
  }
}

TEST(Users, H31_UntypedProperties) {
  PromptRequest request = request_with({text_message(Role::kUser, "q")});
  request.tools = {tool("f", R"({"type":"object","properties":{"a":{"description":"D"},
      "b":{"anyOf":[{"type":"string"},{"type":"null"}]},"c":{"type":[]}}})"),
                   tool("g")};
  const std::string text = prompt_text(request);
  EXPECT_NE(
      text.find("type f = (_: {\n// D\na?: any,\nb?:\n | string\n | null\n,\nc?: any,\n}) => any;"),
      text.npos)
      << text;
  EXPECT_NE(text.find("type g = () => any;"), text.npos);
}

TEST(Users, H33_WordsThatLookLikeHeaders) {
  const Answer answer =
      parse("<|channel|>final<|message|>analysis of assistantfinal and commentary<|return|>");
  EXPECT_EQ(answer.content, "analysis of assistantfinal and commentary");
  EXPECT_EQ(answer.reasoning, "");
}

TEST(Users, H35_PreambleBeforeCall) {
  const Answer answer = parse(
      "<|channel|>commentary<|message|>Plan: 1, 2<|end|><|start|>assistant "
      "to=functions.f<|channel|>"
      "commentary <|constrain|>json<|message|>{}<|call|>",
      {.role = Role::kAssistant, .tool_names = {"f"}});
  EXPECT_EQ(answer.content, "Plan: 1, 2");
  EXPECT_EQ(answer.calls, (Calls{{"f", "{}"}}));
}

TEST(Users, H39_ReasoningEffort) {
  PromptRequest request = request_with({text_message(Role::kUser, "q")});
  EXPECT_NE(prompt_text(request).find("\n\nReasoning: medium\n\n"), std::string::npos);
  const std::pair<const char*, const char*> kMap[] = {{"low", "low"},     {"medium", "medium"},
                                                      {"high", "high"},   {"none", "low"},
                                                      {"minimal", "low"}, {"xhigh", "high"}};
  for (const auto& [value, word] : kMap) {
    const auto effort = parse_reasoning_effort(value);
    ASSERT_TRUE(effort.ok()) << value;
    request.reasoning_effort = *effort;
    EXPECT_NE(prompt_text(request).find("\n\nReasoning: " + std::string(word) + "\n\n"),
              std::string::npos);
  }
  for (const char* value : {"HIGH", "", "3"}) {
    const auto effort = parse_reasoning_effort(value);
    ASSERT_FALSE(effort.ok()) << value;
    EXPECT_EQ(effort.error().http_status, 400);
  }
}

TEST(Users, H41_CutShort) {
  const std::vector<int32_t> ids =
      structured("<|channel|>analysis<|message|>We need to add two numbers.<|end|>");
  for (const size_t length : {1, 3, 5, 8}) {
    const Answer answer = parse(std::vector<int32_t>(ids.begin(), ids.begin() + length));
    EXPECT_EQ(answer.content, "");
    EXPECT_EQ(
        answer.reasoning,
        length < 4 ? "" : format_test::tokenizer()->decode(std::span(ids).subspan(3, length - 3)));
    EXPECT_FALSE(answer.is_complete);
  }
}

TEST(Users, H43_HistoryEndsInEnd) {
  const std::vector<int32_t> ids = prompt_ids(request_with(
      {text_message(Role::kUser, "1"), answer_message("a"), text_message(Role::kUser, "2"),
       tool_call_message("f", "{}"), tool_result_message("f", "r"), answer_message("b"),
       text_message(Role::kUser, "3")}));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kReturn), 0);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kCall), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kEnd), 7);  // system, 3 user, result, 2 finals
}

}  // namespace
}  // namespace briar

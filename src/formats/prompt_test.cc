// Whole prompts: the shape that models were trained on, and what render_prompt() adds.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>

#include "formats/test_support.h"

namespace briar {
namespace {

using format_test::harmony;
namespace bj = boost::json;

struct KnownTool {
  const char* description;
  const char* schema;
};

// The tools that the bundled model was trained with.
const std::map<std::string, KnownTool> kTools = {
    {"add",
     {"Adds two numbers.",
      R"({"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},
                 "required":["a","b"]})"}},
    {"get_time",
     {"Gets the local time of a city.",
      R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})"}},
    {"get_weather",
     {"Gets the current weather in the provided location.",
      R"({"type":"object","properties":{"location":{"type":"string",
                         "description":"The city to look up"},"format":{"type":"string",
                         "enum":["celsius","fahrenheit"],"default":"celsius"}},
                         "required":["location"]})"}},
    {"now", {"Gets the current time.", "null"}},
    {"search",
     {"Searches the document store.",
      R"({"type":"object","properties":{"query":{"type":"string",
                    "description":"What to look for"},"top_k":{"type":"integer","default":3}},
                    "required":["query"]})"}},
    {"set_alarm",
     {"Sets an alarm.",
      R"({"type":"object","properties":{"hour":{"type":"integer"},
                       "minute":{"type":"integer"}},"required":["hour","minute"]})"}},
};

std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const size_t from = text.find(begin);
  if (from == text.npos) return {};
  const size_t at = from + begin.size();
  return std::string(text.substr(at, text.find(end, at) - at));
}

std::vector<ToolDefinition> tools_in(std::string_view text) {
  std::vector<ToolDefinition> tools;
  for (size_t at = text.find("\ntype "); at != text.npos; at = text.find("\ntype ", at + 1)) {
    const std::string name = between(text.substr(at), "\ntype ", " =");
    const KnownTool& known = kTools.at(name);
    tools.push_back(
        {.name = name,
         .description = known.description,
         .parameters = std::make_shared<const bj::value>(*json::parse(known.schema, name))});
  }
  return tools;
}

// The request that a recorded prompt came from.
PromptRequest request_of(std::string_view text, const std::vector<int64_t>& ids) {
  PromptRequest request;
  request.date = between(text, "Current date: ", "\n");
  request.reasoning_effort = *parse_reasoning_effort(between(text, "Reasoning: ", "\n"));
  TranscriptOptions options;
  options.has_end = false;
  for (const Message& message : harmony()->parse(ids, options).messages) {
    if (message.role == Role::kSystem) continue;
    if (message.role != Role::kDeveloper) {
      request.messages.push_back(message);
      continue;
    }
    const std::string body = message_text(message);
    request.tools = tools_in(body);
    if (body.starts_with("# Instructions\n\n")) {
      const std::string_view instructions = std::string_view(body).substr(16);
      request.instructions = std::string(instructions.substr(0, instructions.find("\n\n# Tools")));
    }
  }
  return request;
}

TEST(Prompt, HasTheShapeOfTheBundledModelsTraining) {
  int num_compared = 0;
  const std::string path = std::string(BRIAR_ASSETS_DIR) + "/golden/tiny-harmony.jsonl";
  for (const bj::value& line : format_test::read_lines(path)) {
    const bj::value* text_json = line.as_object().if_contains("text");
    if (text_json == nullptr) continue;
    const std::string_view text = text_json->get_string();
    // A call as the model samples it, channel before recipient: the renderer writes the other
    // order.
    if (text.find("<|channel|>commentary to=") != text.npos) continue;
    SCOPED_TRACE(std::string(std::string_view(line.at("name").get_string())));
    const auto ids = bj::value_to<std::vector<int64_t>>(line.at("prompt"));
    const auto got = harmony()->render_prompt(request_of(text, ids));
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(std::vector<int64_t>(got->begin(), got->end()), ids) << harmony()->text_of(*got);
    ++num_compared;
  }
  EXPECT_GE(num_compared, 38);
}

PromptRequest request_with(std::vector<Message> messages) {
  PromptRequest request;
  request.messages = std::move(messages);
  request.date = std::nullopt;
  return request;
}

std::string body_of(const PromptRequest& request) {
  const auto ids = harmony()->render_prompt(request);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  const std::string text = harmony()->text_of(*ids);
  return text.substr(text.find("<|end|>") + 7);  // after the system message
}

TEST(Prompt, IsWrittenFromOneUserText) {
  PromptRequest request = request_with({text_message(Role::kUser, "What is 17 + 25?")});
  request.date = "2026-11-30";
  request.reasoning_effort = ReasoningEffort::kLow;
  EXPECT_EQ(harmony()->text_of(*harmony()->render_prompt(request)),
            "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
            "Knowledge cutoff: 2024-06\nCurrent date: 2026-11-30\n\nReasoning: low\n\n"
            "# Valid channels: analysis, commentary, final. Channel must be included for every "
            "message.<|end|><|start|>user<|message|>What is 17 + 25?<|end|><|start|>assistant");
  EXPECT_EQ(PromptRequest().date, current_date());
  EXPECT_EQ(current_date().size(), 10u);
}

TEST(Prompt, LeadingSystemTextsAreInstructions) {
  PromptRequest request =
      request_with({text_message(Role::kSystem, "A"), text_message(Role::kDeveloper, "B"),
                    text_message(Role::kUser, "q"), text_message(Role::kSystem, "C")});
  request.instructions = "0";
  EXPECT_EQ(body_of(request),
            "<|start|>developer<|message|># Instructions\n\n0\n\nA\n\nB<|end|>"
            "<|start|>user<|message|>q<|end|>"
            "<|start|>developer<|message|># Instructions\n\nC<|end|><|start|>assistant");
}

TEST(Prompt, ResponseFormatsFollowTheInstructions) {
  PromptRequest request = request_with({text_message(Role::kUser, "q")});
  request.instructions = "I";
  request.response_formats = {{.name = "list", .description = "L1\nL2", .schema_json = "{}"}};
  EXPECT_EQ(body_of(request),
            "<|start|>developer<|message|># Instructions\n\nI\n\n# Response Formats\n\n## list\n\n"
            "// L1\n// L2\n{}<|end|><|start|>user<|message|>q<|end|><|start|>assistant");
}

TEST(Prompt, ReasoningStaysOnlyInTheOpenTurn) {
  const std::vector<Message> messages = {
      text_message(Role::kUser, "q1"), reasoning_message("t1"), answer_message("a1"),
      text_message(Role::kUser, "q2"), reasoning_message("t2"), answer_message("a2"),
      text_message(Role::kUser, "q3"), reasoning_message("t3"), tool_call_message("f", "{}"),
      tool_result_message("f", "r")};
  const std::string text = body_of(request_with(messages));
  EXPECT_EQ(text.find("t1"), text.npos);
  EXPECT_EQ(text.find("t2"), text.npos);
  EXPECT_NE(text.find("t3"), text.npos);
  RenderOptions options;
  options.drop_analysis = false;
  EXPECT_NE(harmony()->text_of(*harmony()->render(messages, options)).find("t1"), text.npos);
}

TEST(Prompt, WhatUsersSayIsNeverDropped) {
  Message odd = text_message(Role::kUser, "mine");
  odd.channel = "analysis";
  EXPECT_NE(body_of(request_with({odd, answer_message("a")})).find("mine"), std::string::npos);
}

TEST(Registry, KnowsHarmonyByNameAndModel) {
  EXPECT_EQ((*make_format("harmony", format_test::tokenizer()))->name(), "harmony");
  EXPECT_EQ((*make_format_for_model("gpt_oss", format_test::tokenizer()))->name(), "harmony");
  EXPECT_FALSE(make_format("gpt_oss", format_test::tokenizer()).ok());
}

TEST(Registry, StopIdsEndAnswersNotMessages) {
  EXPECT_EQ(harmony()->stop_ids(), (std::vector<int32_t>{200002, 200012}));
}

}  // namespace
}  // namespace briar

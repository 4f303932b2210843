// Harmony by construction: whatever is drawn under the mask is a legal turn.
#include <boost/json.hpp>

#include "base/json.h"
#include "grammar/test_schema_validator.h"
#include "grammar/test_walk.h"

namespace briar {
namespace {

using grammar_test::compiler;
using grammar_test::harmony;
using grammar_test::SchemaValidator;
using grammar_test::special;
using grammar_test::tokenizer;
using grammar_test::Walk;
using grammar_test::Walker;
namespace bj = boost::json;

std::shared_ptr<const bj::value> schema(std::string_view text) {
  return std::make_shared<const bj::value>(bj::parse(text));
}

std::vector<GrammarTool> two_tools() {
  return {{.name = "get_weather",
           .parameters = schema(R"({"type":"object","properties":{"city":{"type":"string"},
             "unit":{"type":"string","enum":["celsius","fahrenheit"]},
             "days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"]})")},
          {.name = "shell",
           .parameters = schema(R"({"type":"object","properties":{"command":{"type":"array",
             "items":{"type":"string"},"minItems":1,"maxItems":3}},"required":["command"],
             "additionalProperties":false})")},
          {.name = "shelljson", .parameters = nullptr}};
}

std::unique_ptr<GrammarConstraint> compile(const ConstraintRequest& request) {
  auto constraint = compiler().compile(request);
  if (!constraint) {
    ADD_FAILURE() << constraint.error().message;
    std::abort();
  }
  return std::move(*constraint);
}

// Both of our parsers and the library's take it without a complaint.
std::vector<ParsedMessage> parse_strictly(const Walk& walk, const std::vector<GrammarTool>& tools) {
  const std::vector<int64_t> wide(walk.ids.begin(), walk.ids.end());
  const Transcript library =
      harmony()->parse(wide, {.role = Role::kAssistant, .strict_library = true});
  EXPECT_TRUE(library.errors.empty()) << harmony()->text_of(walk.ids);
  ParserOptions options;
  for (const GrammarTool& tool : tools) options.tool_names.push_back(tool.name);
  auto parser = harmony()->make_parser(options);
  std::vector<Delta> deltas;
  for (const int32_t id : walk.ids) parser->push(id, deltas);
  parser->finish(deltas);
  EXPECT_EQ(parser->warnings().total(), 0) << harmony()->text_of(walk.ids);
  EXPECT_TRUE(parser->is_complete());
  EXPECT_EQ(parser->messages().size(), library.messages.size());
  return parser->messages();
}

void expect_valid_arguments(const ParsedMessage& call, const std::vector<GrammarTool>& tools,
                            bool by_schema) {
  const auto tool = std::find_if(tools.begin(), tools.end(),
                                 [&](const GrammarTool& t) { return t.name == call.tool_name; });
  ASSERT_NE(tool, tools.end()) << call.tool_name;
  auto value = json::parse(message_text(call.message), "arguments");
  ASSERT_TRUE(value.ok()) << value.error().message << " " << message_text(call.message);
  ASSERT_TRUE(value->is_object());
  if (!by_schema) return;
  const bj::value nothing = bj::parse(R"({"type":"object","maxProperties":0})");
  EXPECT_TRUE(SchemaValidator(tool->parameters ? *tool->parameters : nothing).is_valid(*value))
      << message_text(call.message);
}

// Words before what is last: reasoning, and preambles where they may be.
void expect_preludes(std::span<const ParsedMessage> messages, bool has_preambles) {
  for (const ParsedMessage& message : messages) {
    const bool is_reasoning = message.kind == Delta::Kind::kReasoning;
    const bool is_preamble = message.kind == Delta::Kind::kContent &&
                             message.message.channel == "commentary" && !message.message.recipient;
    EXPECT_TRUE(is_reasoning || (has_preambles && is_preamble));
  }
}

struct WalkCase {
  std::string name;
  ConstraintRequest request;
  int num_walks = 60;
};

class HarmonyWalk : public testing::TestWithParam<WalkCase> {};

TEST_P(HarmonyWalk, EveryTranscriptIsLegal) {
  const ConstraintRequest& request = GetParam().request;
  Walker walker(7);
  int num_finished = 0, num_calls = 0;
  for (int i = 0; i < GetParam().num_walks; ++i) {
    auto constraint = compile(request);
    const Walk walk = walker.run(*constraint, 300);
    if (!walk.is_finished) continue;
    ++num_finished;
    const auto messages = parse_strictly(walk, request.tools);
    ASSERT_FALSE(messages.empty());
    const ParsedMessage& last = messages.back();
    const bool is_call = last.kind == Delta::Kind::kToolCall;
    const bool must_call =
        request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
    expect_preludes(std::span(messages).first(messages.size() - 1),
                    request.tool_choice != ToolChoice::kNone &&
                        (must_call || request.answer.kind == AnswerGrammar::Kind::kText));
    EXPECT_TRUE(is_call || !must_call);
    EXPECT_TRUE(!is_call || request.tool_choice != ToolChoice::kNone);
    EXPECT_EQ(walk.ids.back(), special(is_call ? "<|call|>" : "<|return|>"));
    if (is_call) {
      ++num_calls;
      expect_valid_arguments(last, request.tools, must_call);
      EXPECT_TRUE(request.tool_name.empty() || last.tool_name == request.tool_name);
    } else {
      EXPECT_EQ(last.message.channel, "final");
      if (request.answer.kind == AnswerGrammar::Kind::kJsonSchema) {
        auto value = json::parse(message_text(last.message), "answer");
        ASSERT_TRUE(value.ok()) << message_text(last.message);
        EXPECT_TRUE(SchemaValidator(bj::parse(request.answer.source)).is_valid(*value))
            << message_text(last.message);
      }
    }
  }
  EXPECT_GT(num_finished, GetParam().num_walks * 9 / 10);
  if (request.tool_choice == ToolChoice::kAuto) {
    EXPECT_GT(num_calls, 0);
    EXPECT_LT(num_calls, num_finished);
  }
}

constexpr const char* kFiveStrings =
    R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"string"},
        "minItems":5,"maxItems":5}},"required":["items"],"additionalProperties":false})";

INSTANTIATE_TEST_SUITE_P(
    Requests, HarmonyWalk,
    testing::Values(
        WalkCase{"text", {}},
        WalkCase{"schema",
                 {.answer = {.kind = AnswerGrammar::Kind::kJsonSchema, .source = kFiveStrings}}},
        WalkCase{"object", {.answer = {.kind = AnswerGrammar::Kind::kJsonObject}}},
        WalkCase{"auto", {.tools = two_tools(), .tool_choice = ToolChoice::kAuto}},
        WalkCase{"auto_schema",
                 {.answer = {.kind = AnswerGrammar::Kind::kJsonSchema, .source = kFiveStrings},
                  .tools = two_tools(),
                  .tool_choice = ToolChoice::kAuto}},
        WalkCase{"none", {.tools = two_tools(), .tool_choice = ToolChoice::kNone}},
        WalkCase{"required", {.tools = two_tools(), .tool_choice = ToolChoice::kRequired}},
        WalkCase{"named",
                 {.tools = two_tools(), .tool_choice = ToolChoice::kNamed, .tool_name = "shell"}}),
    [](const auto& info) { return info.param.name; });

// users.md H17 with the mask alone: logits from anything, so at random.
TEST(HarmonyGrammar, H17RequiredCallsAreOfListedToolsWithValidArguments) {
  auto tools = two_tools();
  tools.pop_back();
  Walker walker(17);
  for (int i = 0; i < 20; ++i) {
    auto constraint = compile({.tools = tools, .tool_choice = ToolChoice::kRequired});
    const Walk walk = walker.run(*constraint, 400);
    ASSERT_TRUE(walk.is_finished);
    const auto messages = parse_strictly(walk, tools);
    ASSERT_EQ(messages.back().kind, Delta::Kind::kToolCall);
    expect_valid_arguments(messages.back(), tools, true);
  }
}

TEST(HarmonyGrammar, H37ReasoningIsFreeAndTheAnswerIsValid) {
  const bj::value five = bj::parse(kFiveStrings);
  Walker walker(37);
  int num_with_reasoning = 0;
  for (int i = 0; i < 20; ++i) {
    auto constraint =
        compile({.answer = {.kind = AnswerGrammar::Kind::kJsonSchema, .source = kFiveStrings}});
    const Walk walk = walker.run(*constraint, 400);
    ASSERT_TRUE(walk.is_finished);
    const auto messages = parse_strictly(walk, {});
    num_with_reasoning += messages.size() > 1;
    auto value = json::parse(message_text(messages.back().message), "answer");
    ASSERT_TRUE(value.ok());
    EXPECT_TRUE(SchemaValidator(five).is_valid(*value));
  }
  EXPECT_GT(num_with_reasoning, 0);
}

// Feeds a transcript; the text up to the token that was not allowed, or nothing.
std::string refused_at(const ConstraintRequest& request, std::string_view text) {
  auto constraint = compile(request);
  const auto ids = tokenizer()->encode_with_specials(text);
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  for (size_t i = 0; i < ids.size(); ++i) {
    constraint->fill_mask(mask);
    if (!has_bit(mask, ids[i])) return harmony()->text_of(std::span(ids).first(i + 1));
    constraint->accept(ids[i]);
  }
  return constraint->is_finished() ? "" : "the end";
}

TEST(HarmonyGrammar, LegalTranscriptsAreAllowed) {
  const ConstraintRequest request{.tools = two_tools(), .tool_choice = ToolChoice::kAuto};
  for (const char* text : {
           "<|channel|>final<|message|>Hi<|return|>",
           "<|channel|>final<|message|><|return|>",
           "<|channel|>analysis<|message|>Hm. {\"a\": \"|end|\"}<|end|><|start|>assistant"
           "<|channel|>final<|message|>  \n a \n<|return|>",
           "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary"
           "<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.shell "
           "<|constrain|>json<|message|>{\"command\": [\"ls\"]}<|call|>",
           " to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>"
           "{\"city\":\"Rome\",\"unit\":\"celsius\"}<|call|>",
           " to=functions.get_weather<|channel|>commentary json<|message|>{\"city\":\"R\"}<|call|>",
           "<|channel|>commentary to=functions.shelljson<|constrain|>json<|message|>{}<|call|>",
           "<|channel|>commentary to=functions.shelljson<|message|>{}<|call|>",
           "<|channel|>commentary to=functions.shell json<|message|>{\"command\":[]}<|call|>",
       }) {
    EXPECT_EQ(refused_at(request, text), "") << text;
  }
}

TEST(HarmonyGrammar, IllegalTranscriptsAreNot) {
  const ConstraintRequest request{.tools = two_tools(), .tool_choice = ToolChoice::kRequired};
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"Hello", "Hello"},
      {"<|return|>", "<|return|>"},
      {"<|start|>assistant", "<|start|>"},
      {"<|channel|>final<|message|>", "<|channel|>final"},
      {"<|channel|>analysis<|message|>a<|return|>", "<|channel|>analysis<|message|>a<|return|>"},
      {"<|channel|>analysis<|message|>a<|channel|>", "<|channel|>analysis<|message|>a<|channel|>"},
      {"<|channel|>analysis<|message|>a<|end|>b", "<|channel|>analysis<|message|>a<|end|>b"},
      {" to=functions.shells", " to=functions.shells"},
      {" to=browser", " to=browser"},
      {"<|channel|>commentary to=functions.shell<|message|>{}",
       "<|channel|>commentary to=functions.shell<|message|>{}"},
      {"<|channel|>commentary to=functions.shelljson<|message|>{}<|end|>",
       "<|channel|>commentary to=functions.shelljson<|message|>{}<|end|>"},
      {"<|channel|>commentary to=functions.shelljson<|message|>{}<|return|>",
       "<|channel|>commentary to=functions.shelljson<|message|>{}<|return|>"},
  };
  for (const auto& [text, refused] : cases) EXPECT_EQ(refused_at(request, text), refused) << text;
}

TEST(HarmonyGrammar, ATurnComesToItsEnd) {
  auto constraint = compile({});
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  std::string text;
  for (int i = 0; i < 8; ++i) text += "<|channel|>analysis<|message|>a<|end|><|start|>assistant";
  EXPECT_EQ(refused_at({}, text + "<|channel|>final<|message|>b<|return|>"), "");
  EXPECT_EQ(refused_at({}, text + "<|channel|>analysis"), text + "<|channel|>analysis");
}

TEST(HarmonyGrammar, OnlyStopIdsFollowACompleteTurn) {
  auto constraint = compile({.answer = {.kind = AnswerGrammar::Kind::kChoice, .choices = {"yes"}}});
  // 100 ids more than the tokenizer has: a checkpoint's padding.
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 131) / 32, ~0u);
  for (const int32_t id : tokenizer()->encode_with_specials("<|channel|>final<|message|>yes")) {
    constraint->fill_mask(mask);
    ASSERT_TRUE(has_bit(mask, id));
    constraint->accept(id);
  }
  constraint->fill_mask(mask);
  const std::vector<int32_t> only_return = {special("<|return|>")};
  EXPECT_EQ(grammar_test::ids_of(mask), only_return);
  constraint->accept(only_return[0]);
  EXPECT_TRUE(constraint->is_finished());
  constraint->fill_mask(mask);
  const std::vector<int32_t> stops = {special("<|return|>"), special("<|call|>")};
  EXPECT_EQ(grammar_test::ids_of(mask), stops);
}

TEST(HarmonyGrammar, PaddingIsNeverAllowedNorAreSpecialTokensInText) {
  auto constraint = compile({});
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 131) / 32, ~0u);
  for (const int32_t id : tokenizer()->encode_with_specials("<|channel|>final<|message|>")) {
    constraint->accept(id);
  }
  constraint->fill_mask(mask);
  for (const int32_t id : grammar_test::ids_of(mask)) {
    ASSERT_LT(id, tokenizer()->vocab_size());
    EXPECT_TRUE(!tokenizer()->is_special(id) || id == special("<|return|>")) << id;
  }
  EXPECT_EQ(grammar_test::ids_of(mask).size(), 199999u);
}

TEST(HarmonyGrammar, RolledBackItIsWhereItWas) {
  const ConstraintRequest request{.tools = two_tools(), .tool_choice = ToolChoice::kRequired};
  Walker walker(3);
  for (int i = 0; i < 20; ++i) {
    auto constraint = compile(request);
    const Walk walk = walker.run(*constraint, 200);
    const auto back = static_cast<size_t>(walker.random()() % (walk.ids.size() + 1));
    constraint->roll_back(static_cast<int64_t>(back));
    auto fresh = compile(request);
    std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
    auto fresh_mask = mask;
    const size_t kept = walk.ids.size() - back;
    for (size_t k = 0; k < kept; ++k) fresh->accept(walk.ids[k]);
    for (size_t k = kept; k < walk.ids.size(); ++k) {
      constraint->fill_mask(mask);
      fresh->fill_mask(fresh_mask);
      ASSERT_EQ(mask, fresh_mask) << "token " << k;
      constraint->accept(walk.ids[k]);
      fresh->accept(walk.ids[k]);
    }
    EXPECT_EQ(constraint->is_finished(), walk.is_finished);
  }
}

TEST(HarmonyGrammar, ATokenThatTheMaskForbadeIsABug) {
  auto constraint = compile({});
  EXPECT_THROW(constraint->accept(0), CheckError);
}

TEST(HarmonyGrammar, ToolChoiceErrorsNameTheirField) {
  const auto error = [](const ConstraintRequest& request) {
    auto constraint = compiler().compile(request);
    return constraint ? Error{} : constraint.error();
  };
  EXPECT_EQ(error({.tool_choice = ToolChoice::kRequired}).param, "tool_choice");
  const Error unknown =
      error({.tools = two_tools(), .tool_choice = ToolChoice::kNamed, .tool_name = "get"});
  EXPECT_EQ(unknown.message, "tool_choice: there is no tool 'get'");
  EXPECT_EQ(unknown.param, "tool_choice");
  auto tools = two_tools();
  tools.push_back(tools[0]);
  EXPECT_EQ(error({.tools = tools, .tool_choice = ToolChoice::kAuto}).message,
            "tools[3].name: 'get_weather' is there twice");
}

}  // namespace
}  // namespace briar

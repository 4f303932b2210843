#include "grammar/grammar.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "formats/harmony_tokens.h"
#include "grammar/answer_source.h"
#include "grammar/harmony_grammar.h"
#include "grammar/plain_constraint.h"
#include "grammar/text_grammar.h"

namespace briar {
namespace {

constexpr const char* kAnswerParam = "response_format";
constexpr const char* kToolsParam = "tools";

Error with_param(Error error, const char* param) {
  if (error.param.empty()) error.param = param;
  return error;
}

bool is_json(AnswerGrammar::Kind kind) {
  return kind == AnswerGrammar::Kind::kJsonObject || kind == AnswerGrammar::Kind::kJsonSchema;
}

class Compiler final : public GrammarCompiler {
 public:
  Compiler(std::shared_ptr<const Format> format,
           std::shared_ptr<const HarmonyVocabulary> vocabulary, bool is_harmony,
           std::unique_ptr<TextGrammarCompiler> texts)
      : format_(std::move(format)),
        vocabulary_(std::move(vocabulary)),
        is_harmony_(is_harmony),
        texts_(std::move(texts)) {}

  Result<std::unique_ptr<GrammarConstraint>> compile(const ConstraintRequest& request) override {
    std::shared_ptr<const TextGrammar> answer;
    if (request.answer.kind != AnswerGrammar::Kind::kText) {
      auto source = check_answer(request.answer, kAnswerParam);
      if (!source) return with_param(source.error(), kAnswerParam);
      auto grammar = compile_text(*source, kAnswerParam);
      if (!grammar) return with_param(grammar.error(), kAnswerParam);
      answer = std::move(*grammar);
    }
    if (is_harmony_) return compile_turn(request, std::move(answer));
    if (request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed) {
      return with_param(make_error("tool_choice: the format {} has no grammar of calls, so none "
                                   "can be required",
                                   format_->name()),
                        "tool_choice");
    }
    return make_plain_constraint(vocabulary_->index, format_->stop_ids(), std::move(answer));
  }

  GrammarCacheStats cache_stats() const override { return texts_->cache_stats(); }

 private:
  Result<std::unique_ptr<GrammarConstraint>> compile_turn(
      const ConstraintRequest& request, std::shared_ptr<const TextGrammar> answer) {
    const bool must_call =
        request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
    HarmonyTurn turn{.has_final = !must_call,
                     .is_json = is_json(request.answer.kind),
                     .answer = std::move(answer)};
    if (auto status = add_calls(request, must_call, turn.calls); !status) return status.error();
    if (must_call && turn.calls.empty()) {
      const bool is_named = request.tool_choice == ToolChoice::kNamed;
      return with_param(is_named
                            ? make_error("tool_choice: there is no tool '{}'", request.tool_name)
                            : make_error("tool_choice: a call is required but there is no tool"),
                        "tool_choice");
    }
    // Words before a call do no harm; beside an answer in JSON they would make it something else.
    turn.has_preamble = !turn.calls.empty() && (must_call || !turn.answer);
    return make_harmony_constraint(vocabulary_, std::move(turn));
  }

  Status add_calls(const ConstraintRequest& request, bool must_call,
                   std::vector<HarmonyTurn::Call>& calls) {
    if (request.tool_choice == ToolChoice::kNone) return Ok{};
    for (size_t i = 0; i < request.tools.size(); ++i) {
      const GrammarTool& tool = request.tools[i];
      if (request.tool_choice == ToolChoice::kNamed && tool.name != request.tool_name) continue;
      const std::string path = fmt::format("tools[{}].parameters", i);
      auto source = must_call || tool.is_strict ? check_parameters(tool, path) : any_json_object();
      if (!source) return with_param(source.error(), kToolsParam);
      auto grammar = compile_text(*source, path);
      if (!grammar) return with_param(grammar.error(), kToolsParam);
      const bool is_known = std::any_of(calls.begin(), calls.end(),
                                        [&](const auto& call) { return call.name == tool.name; });
      if (is_known || !is_name(tool.name)) {
        return with_param(make_error("tools[{}].name: '{}' is {}", i, printable(tool.name),
                                     is_known ? "there twice" : "no name of a function"),
                          kToolsParam);
      }
      calls.push_back({.name = tool.name, .arguments = std::move(*grammar)});
    }
    return Ok{};
  }

  // No more than what ends a name in a header is asked for here; the renderer asks for more.
  static bool is_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(),
                                        [](char c) { return c > ' ' && c < 127 && c != '<'; });
  }

  static std::string printable(std::string text) {
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    return text.substr(0, 80);
  }

  Result<std::shared_ptr<const TextGrammar>> compile_text(const CheckedSource& source,
                                                          const std::string& path) {
    auto grammar = texts_->compile(source.source, path);
    if (grammar || grammar.error().http_status != 400) return grammar;
    // XGrammar does not say which of a schema's patterns it could not read.
    for (const auto& [where, pattern] : source.patterns) {
      auto alone = texts_->compile({TextSource::Kind::kRegex, pattern}, where);
      if (!alone) return alone;
    }
    return grammar;
  }

  const std::shared_ptr<const Format> format_;
  const std::shared_ptr<const HarmonyVocabulary> vocabulary_;
  const bool is_harmony_;
  const std::unique_ptr<TextGrammarCompiler> texts_;
};

}  // namespace

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(
    std::shared_ptr<const Format> format, std::shared_ptr<const Tokenizer> tokenizer,
    GrammarOptions options) {
  auto vocabulary = std::make_shared<HarmonyVocabulary>();
  vocabulary->tokenizer = tokenizer;
  vocabulary->index = std::make_shared<VocabularyIndex>(*tokenizer);
  const bool is_harmony = format->name() == "harmony";
  if (is_harmony) {
    auto tokens = HarmonyTokens::find(*tokenizer);
    if (!tokens) return tokens.error();
    vocabulary->tokens = *tokens;
  }
  auto texts = TextGrammarCompiler::create(tokenizer, vocabulary->index, options);
  if (!texts) return texts.error();
  // The rules of JSON's own values are what most of a schema's compilation is spent on; XGrammar
  // keeps them for the next one.
  auto warm = (*texts)->compile(any_json_object().source, "any JSON object");
  if (!warm) return warm.error();
  return std::unique_ptr<GrammarCompiler>(std::make_unique<Compiler>(
      std::move(format), std::move(vocabulary), is_harmony, std::move(*texts)));
}

}  // namespace briar

#include "server/api/constraints.h"

#include <utility>

#include "server/api/plan_choices.h"
#include "server/api/services.h"
#include "server/api/token_rules.h"

namespace briar {
namespace {

AnswerGrammar grammar_of(const AnswerShape& shape) {
  AnswerGrammar grammar;
  grammar.source = shape.text;
  grammar.choices = shape.choices;
  switch (shape.kind) {
    case AnswerShape::Kind::kFree: grammar.kind = AnswerGrammar::Kind::kText; break;
    case AnswerShape::Kind::kJsonObject: grammar.kind = AnswerGrammar::Kind::kJsonObject; break;
    case AnswerShape::Kind::kJsonSchema: grammar.kind = AnswerGrammar::Kind::kJsonSchema; break;
    case AnswerShape::Kind::kRegex: grammar.kind = AnswerGrammar::Kind::kRegex; break;
    case AnswerShape::Kind::kEbnf: grammar.kind = AnswerGrammar::Kind::kEbnf; break;
    case AnswerShape::Kind::kChoice: grammar.kind = AnswerGrammar::Kind::kChoice; break;
    case AnswerShape::Kind::kStructuralTag:
      grammar.kind = AnswerGrammar::Kind::kStructuralTag;
      break;
  }
  return grammar;
}

ToolChoice choice_of(const ToolSelection& selection) {
  switch (selection.kind) {
    case ToolSelection::Kind::kAuto: return ToolChoice::kAuto;
    case ToolSelection::Kind::kNone: return ToolChoice::kNone;
    case ToolSelection::Kind::kRequired: return ToolChoice::kRequired;
    case ToolSelection::Kind::kNamed: return ToolChoice::kNamed;
  }
  return ToolChoice::kAuto;
}

ConstraintRequest constraint_request(const ChatRequest& chat) {
  ConstraintRequest request;
  request.answer = grammar_of(chat.shape);
  for (size_t i = 0; i < chat.prompt.tools.size(); ++i) {
    const ToolDefinition& tool = chat.prompt.tools[i];
    request.tools.push_back({.name = tool.name,
                             .parameters = tool.parameters,
                             .is_strict = i < chat.strict_tools.size() && chat.strict_tools[i]});
  }
  if (!request.tools.empty()) request.tool_choice = choice_of(chat.tool_choice);
  request.tool_name = chat.tool_choice.name;
  return request;
}

Result<Constraints> compile(GrammarCompiler& compiler, const ConstraintRequest& request, int n) {
  Constraints constraints;
  for (int i = 0; i < n; ++i) {
    auto constraint = compiler.compile(request);
    if (!constraint) return constraint.error();
    constraints.push_back(std::move(*constraint));
  }
  return constraints;
}

// Adds the thinking budget.
Constraints limited(const ApiState& api, const ChatRequest& chat, int n, Constraints constraints) {
  const auto gate = api.config.format->reasoning_gate();
  if (!chat.thinking_budget || !gate) return constraints;
  constraints.resize(static_cast<size_t>(n));
  const ParserMaker make_parser = chat_parser_maker(api.config, chat.prompt);
  for (auto& constraint : constraints) {
    constraint =
        limit_reasoning(*chat.thinking_budget, *gate, make_parser(), std::move(constraint));
  }
  return constraints;
}

}  // namespace

bool needs_grammar(const ApiConfig& config, const ChatRequest& chat) {
  if (chat.shape.kind != AnswerShape::Kind::kFree || config.always_constrains) return true;
  if (chat.tool_choice.kind == ToolSelection::Kind::kRequired ||
      chat.tool_choice.kind == ToolSelection::Kind::kNamed) {
    return true;
  }
  for (const bool is_strict : chat.strict_tools) {
    if (is_strict) return true;
  }
  return false;
}

void make_constraints(const std::shared_ptr<ApiState>& api, const ChatRequest& chat, int n,
                      const std::shared_ptr<HttpReply>& reply,
                      std::function<void(Result<Constraints>)> then) {
  if (!needs_grammar(api->config, chat)) return then(limited(*api, chat, n, {}));
  if (!api->config.grammars) {
    return then(make_error("this server binds no answers to a grammar"));
  }
  if (chat.prompt.continues_last) {
    Error error = make_error("an answer that is continued cannot be bound to a grammar");
    error.param = "continue_final_message";
    return then(error);
  }
  api->compile_worker->post([api, chat, n, reply, then = std::move(then)] {
    auto constraints = compile(*api->config.grammars, constraint_request(chat), n);
    if (constraints) constraints = limited(*api, chat, n, std::move(*constraints));
    reply->post([then, constraints = std::move(constraints)] { then(constraints); });
  });
}

}  // namespace briar

#include "formats/chat_turns.h"

#include <boost/json.hpp>
#include <utility>

#include "base/json.h"
#include "formats/json_text.h"

namespace briar {
namespace {

namespace bj = boost::json;

constexpr std::string_view kFunctions = "functions.";

std::string without_namespace(std::string_view name) {
  if (name.starts_with(kFunctions)) name.remove_prefix(kFunctions.size());
  return std::string(name);
}

bool is_instruction(const Message& message) {
  return message.role == Role::kSystem || message.role == Role::kDeveloper;
}

// System and developer messages in Harmony's own terms are read for their instructions.
std::string text_of(const Message& message) {
  std::string text;
  for (const ContentPart& part : message.content) {
    if (const auto* piece = std::get_if<TextContent>(&part)) text += piece->text;
    if (const auto* developer = std::get_if<DeveloperContent>(&part)) {
      text += developer->instructions.value_or("");
    }
    if (const auto* system = std::get_if<SystemContent>(&part)) {
      text += system->model_identity.value_or("");
    }
  }
  return text;
}

// Adds an assistant's message to the turn if it still fits there.
bool add_to_turn(const Message& message, ChatTurn& turn) {
  if (turn.role != Role::kAssistant) return false;
  if (message.recipient && message.recipient->starts_with(kFunctions)) {
    turn.calls.push_back(
        {.name = without_namespace(*message.recipient), .arguments = message_text(message)});
    return true;
  }
  if (!turn.text.empty() || !turn.calls.empty()) return false;
  if (message.channel == "analysis") {
    turn.reasoning += message_text(message);
  } else {
    turn.text = message_text(message);
  }
  return true;
}

}  // namespace

std::vector<ChatTurn> chat_turns(std::span<const Message> messages) {
  std::vector<ChatTurn> turns;
  bool is_closed = true;  // whether the last turn takes no more
  for (const Message& message : messages) {
    if (message.role == Role::kAssistant) {
      if (!is_closed && add_to_turn(message, turns.back())) continue;
      turns.emplace_back().role = Role::kAssistant;
      add_to_turn(message, turns.back());
      is_closed = false;
      continue;
    }
    ChatTurn turn;
    turn.role = is_instruction(message) ? Role::kSystem : message.role;
    turn.text = text_of(message);
    if (message.role == Role::kTool) turn.tool_name = without_namespace(message.name.value_or(""));
    turns.push_back(std::move(turn));
    is_closed = true;
  }
  return turns;
}

Result<ChatRequest> chat_request(const PromptRequest& request, bool has_tools) {
  if (!request.tools.empty() && !has_tools) {
    Error error = make_error("the chat format of this model has no tools");
    error.param = "tools";
    return error;
  }
  for (const ToolDefinition& tool : request.tools) {
    if (auto status = check_tool_name(tool.name); !status) return status.error();
  }
  ChatRequest chat;
  chat.system = request.instructions;
  size_t num_leading = 0;
  while (num_leading < request.messages.size() && is_instruction(request.messages[num_leading])) {
    const std::string text = text_of(request.messages[num_leading++]);
    chat.system = chat.system ? *chat.system + "\n\n" + text : text;
  }
  chat.turns = chat_turns(std::span(request.messages).subspan(num_leading));
  const bool has_answer = !chat.turns.empty() && chat.turns.back().role == Role::kAssistant &&
                          chat.turns.back().calls.empty();
  if (request.continues_last && !has_answer) {
    return make_error("the last message is not an answer that could be continued");
  }
  return chat;
}

std::string tool_as_python_json(const ToolDefinition& tool, int indent) {
  bj::object function{{"name", tool.name}};
  if (!tool.description.empty()) function["description"] = tool.description;
  if (tool.parameters != nullptr) function["parameters"] = *tool.parameters;
  return python_json(bj::object{{"type", "function"}, {"function", std::move(function)}}, indent);
}

std::string arguments_as_python_json(const std::string& arguments) {
  const auto parsed = json::parse(arguments, "arguments");
  return parsed ? python_json(*parsed) : arguments;
}

}  // namespace briar

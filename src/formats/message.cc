#include "formats/message.h"

#include <algorithm>
#include <array>
#include <utility>

namespace briar {
namespace {

constexpr std::array<std::pair<std::string_view, Role>, 5> kRoleWords = {{
    {"user", Role::kUser},
    {"assistant", Role::kAssistant},
    {"system", Role::kSystem},
    {"developer", Role::kDeveloper},
    {"tool", Role::kTool},
}};

}  // namespace

std::string_view role_word(Role role) {
  for (const auto& [word, value] : kRoleWords) {
    if (value == role) return word;
  }
  CHECK(false, "role {} has no word", static_cast<int>(role));
  return {};
}

std::optional<Role> role_from_word(std::string_view word) {
  for (const auto& [candidate, role] : kRoleWords) {
    if (candidate == word) return role;
  }
  return std::nullopt;
}

Result<ReasoningEffort> parse_reasoning_effort(std::string_view value) {
  if (value == "low" || value == "minimal" || value == "none") return ReasoningEffort::kLow;
  if (value == "medium") return ReasoningEffort::kMedium;
  if (value == "high" || value == "xhigh") return ReasoningEffort::kHigh;
  Error error = make_error(
      "reasoning effort '{}' is not one of none, minimal, low, medium, high, xhigh", value);
  error.param = "reasoning_effort";
  return error;
}

Status check_tool_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed)) {
    return Ok{};
  }
  Error error = make_error(
      "tool name '{}' must be 1 to 64 characters out of letters, digits, '_', '-' and '.'", name);
  error.param = "tools";
  return error;
}

std::string message_text(const Message& message) {
  std::string text;
  for (const ContentPart& part : message.content) {
    if (const auto* piece = std::get_if<TextContent>(&part)) text += piece->text;
  }
  return text;
}

Message text_message(Role role, std::string text) {
  Message message;
  message.role = role;
  message.content.push_back(TextContent{std::move(text)});
  return message;
}

Message reasoning_message(std::string text) {
  Message message = text_message(Role::kAssistant, std::move(text));
  message.channel = "analysis";
  return message;
}

Message answer_message(std::string text) {
  Message message = text_message(Role::kAssistant, std::move(text));
  message.channel = "final";
  return message;
}

Message tool_call_message(std::string_view tool, std::string arguments_json) {
  Message message = text_message(Role::kAssistant, std::move(arguments_json));
  message.channel = "commentary";
  message.recipient = "functions." + std::string(tool);
  message.content_type = "<|constrain|>json";
  return message;
}

Message tool_result_message(std::string_view tool, std::string text) {
  Message message = text_message(Role::kTool, std::move(text));
  message.channel = "commentary";
  message.name = "functions." + std::string(tool);
  message.recipient = "assistant";
  return message;
}

}  // namespace briar

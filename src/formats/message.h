// The message model that chat formats render and parse.
//
// It follows Harmony's, the richest one in use: a message has a channel (analysis = reasoning,
// commentary = tool calls and preambles, final = the answer) and a recipient (who it is for: a
// tool, or the assistant where a tool answers). Formats without channels map from it.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace briar {

enum class Role { kUser, kAssistant, kSystem, kDeveloper, kTool };

std::string_view role_word(Role role);
std::optional<Role> role_from_word(std::string_view word);

enum class ReasoningEffort { kLow, kMedium, kHigh };

// Maps a request's value: low, medium, high; none and minimal mean low (the least the models were
// trained with), xhigh means high. Anything else, other spellings included, is an error.
Result<ReasoningEffort> parse_reasoning_effort(std::string_view value);

// A function that the model may call.
struct ToolDefinition {
  std::string name;
  std::string description;
  std::shared_ptr<const boost::json::value> parameters;  // a JSON schema; null: takes no argument
};

// Function names end up in headers and declarations: 1 to 64 letters, digits, '_', '-' and '.'.
Status check_tool_name(std::string_view name);

struct ToolNamespace {
  std::string name;
  std::optional<std::string> description;
  std::vector<ToolDefinition> tools;
};

// Ordered by key, in byte order. The key and the namespace's name are usually the same word.
using ToolMap = std::map<std::string, ToolNamespace>;

struct ChannelConfig {
  std::vector<std::string> valid_channels;
  bool channel_required = false;
};

struct TextContent {
  std::string text;
};

// What a system message tells the model; an absent field is left out of the prompt.
struct SystemContent {
  std::optional<std::string> model_identity;
  std::optional<ReasoningEffort> reasoning_effort;
  ToolMap tools;
  std::optional<std::string> conversation_start_date;  // YYYY-MM-DD
  std::optional<std::string> knowledge_cutoff;         // YYYY-MM
  std::optional<ChannelConfig> channel_config;
};

// What the application's author tells the model.
struct DeveloperContent {
  std::optional<std::string> instructions;
  ToolMap tools;
};

using ContentPart = std::variant<TextContent, SystemContent, DeveloperContent>;

struct Message {
  Role role = Role::kUser;
  std::optional<std::string> name;  // of the author; a tool's is required
  std::optional<std::string> recipient;
  std::vector<ContentPart> content;
  std::optional<std::string> channel;
  std::optional<std::string> content_type;
};

// The text parts of a message, joined.
std::string message_text(const Message& message);

// The messages that make up a chat history.
Message text_message(Role role, std::string text);
Message reasoning_message(std::string text);
Message answer_message(std::string text);
// `tool` is the function's name as the client knows it, without a namespace.
Message tool_call_message(std::string_view tool, std::string arguments_json);
Message tool_result_message(std::string_view tool, std::string text);

}  // namespace briar

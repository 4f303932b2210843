// A history in the terms of formats without channels: turns, each of one speaker.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/message.h"

namespace briar {

struct ChatCall {
  std::string name;       // as the client declared it
  std::string arguments;  // JSON, or whatever the model wrote
};

// Reasoning, text and calls of the assistant that follow each other are one turn.
struct ChatTurn {
  Role role = Role::kUser;  // a developer's is kSystem
  std::string text;
  std::string reasoning;        // kAssistant only
  std::vector<ChatCall> calls;  // kAssistant only
  std::string tool_name;        // kTool only
};

std::vector<ChatTurn> chat_turns(std::span<const Message> messages);

// A request with its instructions as one text: the given ones and those at the head of the history,
// joined by empty lines. Not set: there are none.
struct ChatRequest {
  std::optional<std::string> system;
  std::vector<ChatTurn> turns;
};

// Fails for tools if the format has none, for names that are no function names, and if the answer
// to go on with is none.
Result<ChatRequest> chat_request(const PromptRequest& request, bool has_tools);

// {"type": "function", "function": {"name", "description"?, "parameters"?}} as Python's
// json.dumps() writes it, which is what templates use. `indent` < 0: on one line.
std::string tool_as_python_json(const ToolDefinition& tool, int indent = -1);

// The arguments of a call as json.dumps() writes them; as they are if they are no JSON.
std::string arguments_as_python_json(const std::string& arguments);

}  // namespace briar

// The Responses API's requests, and the conversations that its stored answers continue.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/message.h"
#include "server/api/parse.h"
#include "server/api/request.h"

namespace briar {

// Which function each call_id belongs to.
using CallNames = std::map<std::string, std::string, std::less<>>;

// A conversation so far, without instructions.
struct Conversation {
  std::vector<Message> messages;
  CallNames call_names;
};

// What an answer repeats of its request, as JSON text.
struct ResponseEcho {
  std::string instructions = "null";
  std::string tools = "[]";
  std::string tool_choice = "\"auto\"";
  std::string text = R"({"format":{"type":"text"}})";
  std::string metadata = "{}";
  std::string effort = "null";
  std::string user = "null";
  std::string previous_response_id = "null";
  bool parallel_tool_calls = true;
};

struct ResponsesRequest {
  ChatRequest chat;      // prompt.messages: the whole conversation
  CallNames call_names;  // of that conversation
  bool is_stored = true;
  bool is_background = false;
  bool truncates = false;  // the oldest of an overlong prompt may be left out
  ResponseEcho echo;
};

// Finds the conversation that a stored response ended; an unknown id is an error.
using ConversationFinder = std::function<Result<Conversation>(std::string_view response_id)>;

Result<Parsed<ResponsesRequest>> parse_responses_request(std::string_view body,
                                                         const ParseContext& context,
                                                         const ConversationFinder& find);

}  // namespace briar

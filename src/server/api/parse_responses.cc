// Bodies of /v1/responses.
#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "formats/json_text.h"
#include "server/api/parse_params.h"
#include "server/api/responses.h"

namespace briar {
namespace {

namespace bj = boost::json;

void read_message_item(Fields& item, const ParseContext& context, std::vector<Message>& out) {
  const auto role = item.text("role", 64);
  const auto known = role ? role_from_word(*role) : std::nullopt;
  if (!known || *known == Role::kTool) {
    return item.fail("role", "'{}' is not one of system, developer, user, assistant",
                     item.path_of("role"));
  }
  if (item.find("content") == nullptr) {
    return item.fail("content", "'{}' is missing", item.path_of("content"));
  }
  std::string text = read_content(item, context);
  out.push_back(*known == Role::kAssistant ? answer_message(std::move(text))
                                           : text_message(*known, std::move(text)));
}

void read_call_item(Fields& item, CallNames& names, std::vector<Message>& out) {
  const auto name = item.text("name", 256);
  const auto id = item.text("call_id", 256);
  if (!name) return item.fail("name", "'{}' is missing", item.path_of("name"));
  if (!id) return item.fail("call_id", "'{}' is missing", item.path_of("call_id"));
  names[*id] = *name;
  out.push_back(tool_call_message(*name, item.text("arguments").value_or("{}")));
}

// "output" is a text or a list of text parts.
std::string read_output(Fields& item, const ParseContext& context) {
  const bj::value* output = item.find("output");
  if (output == nullptr) {
    item.fail("output", "'{}' is missing", item.path_of("output"));
    return {};
  }
  if (output->is_string()) return item.text("output").value_or("");
  const bj::array* parts = item.list("output", context.limits.max_parts);
  std::string text;
  for (size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    auto part = item.element("output", i, (*parts)[i]);
    if (!part) break;
    const auto piece = part->text("text");
    if (!piece) part->fail("text", "'{}' is missing; only text is read", part->path_of("text"));
    text += piece.value_or("");
  }
  return text;
}

void read_result_item(Fields& item, const ParseContext& context, const CallNames& names,
                      std::vector<Message>& out) {
  const auto id = item.text("call_id", 256);
  const auto name = names.find(id.value_or(""));
  if (!id || name == names.end()) {
    return item.fail("call_id", "'{}' is not the call_id of an earlier function_call",
                     item.path_of("call_id"));
  }
  out.push_back(tool_result_message(name->second, read_output(item, context)));
}

void read_item(Fields& item, const ParseContext& context, Conversation& out) {
  const std::string type = item.text("type", 64).value_or("message");
  if (type == "message") {
    read_message_item(item, context, out.messages);
  } else if (type == "reasoning") {
    std::string text = read_content(item, context);
    if (!text.empty()) out.messages.push_back(reasoning_message(std::move(text)));
  } else if (type == "function_call") {
    read_call_item(item, out.call_names, out.messages);
  } else if (type == "function_call_output") {
    read_result_item(item, context, out.call_names, out.messages);
  } else {
    item.fail("type", "'{}' is not one of message, reasoning, function_call, function_call_output",
              item.path_of("type"));
  }
}

void read_input(Fields& body, const ParseContext& context, Conversation& out) {
  const bj::value* input = body.find("input");
  if (input == nullptr) return body.fail("input", "'input' is missing");
  if (input->is_string()) {
    out.messages.push_back(text_message(Role::kUser, body.text("input").value_or("")));
    return;
  }
  const bj::array* list = body.list("input", context.limits.max_messages);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size() && body.ok(); ++i) {
    if (auto item = body.element("input", i, (*list)[i])) read_item(*item, context, out);
  }
  if (out.messages.empty()) body.fail("input", "'input' is empty");
}

// Items do not say whether an assistant's text was its answer or what it said before a call of the
// same turn. What comes after it tells.
void mark_preambles(std::vector<Message>& messages) {
  bool has_later_call = false;
  for (size_t i = messages.size(); i > 0; --i) {
    Message& message = messages[i - 1];
    if (message.role == Role::kAssistant) {
      if (message.recipient) has_later_call = true;
      if (message.channel == "final" && has_later_call) message.channel = "commentary";
    } else if (message.role != Role::kTool) {
      has_later_call = false;
    }
  }
}

void read_history(Fields& body, const ParseContext& context, const ConversationFinder& find,
                  ResponsesRequest& request) {
  Conversation conversation;
  if (const auto id = body.text("previous_response_id", 256)) {
    auto found = find(*id);
    if (!found) {
      return body.fail("previous_response_id", "{}", found.error().message);
    }
    conversation = std::move(*found);
    request.echo.previous_response_id = json_quote(*id);
  }
  read_input(body, context, conversation);
  mark_preambles(conversation.messages);
  request.chat.prompt.messages = std::move(conversation.messages);
  request.call_names = std::move(conversation.call_names);
}

void read_reasoning(Fields& body, ResponsesRequest& request) {
  auto reasoning = body.object("reasoning");
  if (!reasoning) return;
  if (const auto word = reasoning->text("effort", 64)) request.echo.effort = json_quote(*word);
  read_reasoning_effort(*reasoning, "effort", request.chat.prompt.reasoning_effort);
  // The reasoning itself is in the answer: nothing is left for a summary to say.
  reasoning->skip("summary");
  reasoning->skip("generate_summary");
  reasoning->note_unread();
}

void read_text_format(Fields& body, const ParseContext& context, ResponsesRequest& request) {
  auto text = body.object("text");
  if (!text) return;
  if (auto format = text->object("format")) {
    read_response_format(*format, true, context, request.chat.shape,
                         request.chat.prompt.response_formats);
    request.echo.text = compact_json(text->json());
  }
  text->skip("verbosity");
  text->note_unread();
}

void read_include(Fields& body, const ParseContext& context, GenerationParams& params) {
  const auto top = body.integer("top_logprobs", 0, context.limits.max_top_logprobs);
  const auto include = body.texts("include", 32, 256);
  const bool wants = include && std::find(include->begin(), include->end(),
                                          "message.output_text.logprobs") != include->end();
  if (wants) params.num_top_logprobs = static_cast<int32_t>(top.value_or(0));
}

void read_metadata(Fields& body, const ParseContext& context, ResponseEcho& echo) {
  const auto metadata = body.object("metadata");
  if (!metadata) return;
  if (static_cast<int64_t>(metadata->json().size()) > context.limits.max_metadata) {
    return body.fail("metadata", "'metadata' has {} entries; at most {} are allowed",
                     metadata->json().size(), context.limits.max_metadata);
  }
  for (const auto& [key, value] : metadata->json()) {
    const bool fits = key.size() <= 64 && value.is_string() && value.get_string().size() <= 512;
    if (!fits) {
      return body.fail("metadata",
                       "'metadata' holds a key of more than 64 bytes or a value that is not a "
                       "string of at most 512");
    }
  }
  echo.metadata = compact_json(metadata->json());
}

void read_storage(Fields& body, ResponsesRequest& request) {
  request.is_stored = body.boolean("store").value_or(true);
  request.is_background = body.boolean("background").value_or(false);
  if (request.is_background && !request.is_stored) {
    body.fail("background", "'background' needs 'store': nothing else could return the answer");
  }
  if (request.is_background && request.chat.params.is_stream) {
    body.fail("background", "'background' excludes 'stream': ask for the response by its id");
  }
  if (body.find("conversation") != nullptr) {
    body.fail("conversation", "'conversation' is not supported; use 'previous_response_id'");
  }
  const std::string truncation = body.text("truncation", 64).value_or("disabled");
  if (truncation != "disabled" && truncation != "auto") {
    body.fail("truncation", "'truncation' is not one of auto, disabled");
  }
  request.truncates = truncation == "auto";
}

void read_tool_fields(Fields& body, const ParseContext& context, ResponsesRequest& request) {
  ToolSettings tools = read_tools(body, true, context);
  if (const bj::value* list = body.find("tools")) request.echo.tools = compact_json(*list);
  if (const bj::value* choice = body.find("tool_choice")) {
    request.echo.tool_choice = compact_json(*choice);
  }
  request.chat.tool_choice = std::move(tools.choice);
  if (request.chat.tool_choice.kind != ToolSelection::Kind::kNone) {
    request.chat.prompt.tools = std::move(tools.tools);
    request.chat.strict_tools = std::move(tools.strict);
  }
  request.echo.parallel_tool_calls = body.boolean("parallel_tool_calls").value_or(true);
}

ResponsesRequest read_responses(Fields& body, const ParseContext& context,
                                const ConversationFinder& find) {
  ResponsesRequest request;
  ChatRequest& chat = request.chat;
  chat.model = body.text("model", context.limits.max_model_name_bytes).value_or("");
  read_params(body, context, chat.params);
  if (chat.params.n != 1) body.fail("n", "'n' is {}; a response has one answer", chat.params.n);
  chat.params.max_tokens = body.integer("max_output_tokens", 1, int64_t{1} << 40);
  read_history(body, context, find, request);
  if (auto instructions = body.text("instructions")) {
    request.echo.instructions = json_quote(*instructions);
    chat.prompt.instructions = std::move(*instructions);
  }
  read_tool_fields(body, context, request);
  read_text_format(body, context, request);
  read_reasoning(body, request);
  chat.thinking_budget = body.integer("thinking_token_budget", 0, int64_t{1} << 40);
  read_include(body, context, chat.params);
  read_metadata(body, context, request.echo);
  if (const auto user = body.text("user", 4096)) request.echo.user = json_quote(*user);
  read_storage(body, request);
  for (const char* key : {"max_tool_calls", "prompt_cache_key", "prompt_cache_retention"}) {
    body.skip(key);
  }
  return request;
}

}  // namespace

Result<Parsed<ResponsesRequest>> parse_responses_request(std::string_view text,
                                                         const ParseContext& context,
                                                         const ConversationFinder& find) {
  auto json = parse_body(text, context.limits.json_depth);
  if (!json) return json.error();
  ReadLog log;
  Fields body(json->get_object(), "", log);
  Parsed<ResponsesRequest> out{.request = read_responses(body, context, find), .ignored = {}};
  if (log.error) return *log.error;
  body.note_unread();
  out.ignored = std::move(log.ignored);
  return out;
}

}  // namespace briar

// Bodies of /v1/chat/completions.
#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "formats/json_text.h"
#include "server/api/parse_params.h"

namespace briar {
namespace {

namespace bj = boost::json;

// Which function each tool_call_id of the history belongs to.
using CallNames = std::map<std::string, std::string, std::less<>>;

void read_call(Fields& call, CallNames& names, std::vector<Message>& out) {
  auto function = call.object("function");
  if (!function) return call.fail("function", "'{}' is missing", call.path_of("function"));
  const auto name = function->text("name", 256);
  if (!name) return function->fail("name", "'{}' is missing", function->path_of("name"));
  std::string arguments;
  // Some clients send the arguments as an object.
  const bj::value* value = function->find("arguments");
  if (value != nullptr && value->is_object()) {
    arguments = compact_json(*value);
  } else {
    arguments = function->text("arguments").value_or("{}");
  }
  if (const auto id = call.text("id", 256)) names[*id] = *name;
  out.push_back(tool_call_message(*name, std::move(arguments)));
}

void read_assistant(Fields& message, const ParseContext& context, CallNames& names,
                    std::vector<Message>& out) {
  auto reasoning = message.text("reasoning_content");
  if (!reasoning) reasoning = message.text("reasoning");
  message.skip("reasoning");
  if (reasoning && !reasoning->empty()) out.push_back(reasoning_message(std::move(*reasoning)));
  const bool has_content = message.find("content") != nullptr;
  std::string content = read_content(message, context);
  const bj::array* calls = message.list("tool_calls", context.limits.max_tools);
  const bool has_calls = calls != nullptr && !calls->empty();
  if (has_calls && !content.empty()) {
    out.push_back(answer_message(std::move(content)));
    out.back().channel = "commentary";  // what the model says before it calls
  } else if (!has_calls && has_content) {
    out.push_back(answer_message(std::move(content)));
  }
  if (!has_calls) return;
  for (size_t i = 0; i < calls->size() && message.ok(); ++i) {
    auto call = message.element("tool_calls", i, (*calls)[i]);
    if (call) read_call(*call, names, out);
  }
}

void read_tool_result(Fields& message, const ParseContext& context, const CallNames& names,
                      std::vector<Message>& out) {
  const auto id = message.text("tool_call_id", 256);
  if (!id) return message.fail("tool_call_id", "'{}' is missing", message.path_of("tool_call_id"));
  const auto name = names.find(*id);
  if (name == names.end()) {
    return message.fail("tool_call_id", "'{}' is not the id of a call in an earlier message",
                        message.path_of("tool_call_id"));
  }
  out.push_back(tool_result_message(name->second, read_content(message, context)));
}

void read_message(Fields& message, const ParseContext& context, CallNames& names,
                  std::vector<Message>& out) {
  const auto role = message.text("role", 64);
  if (!role) return message.fail("role", "'{}' is missing", message.path_of("role"));
  message.skip("name");
  if (*role == "assistant") return read_assistant(message, context, names, out);
  if (*role == "tool") return read_tool_result(message, context, names, out);
  const auto known = role_from_word(*role);
  if (!known) {
    return message.fail("role", "'{}' is not one of system, developer, user, assistant, tool",
                        message.path_of("role"));
  }
  if (message.find("content") == nullptr) {
    return message.fail("content", "'{}' is missing", message.path_of("content"));
  }
  out.push_back(text_message(*known, read_content(message, context)));
}

void read_messages(Fields& body, const ParseContext& context, ChatRequest& request) {
  const bj::array* list = body.list("messages", context.limits.max_messages);
  if (list == nullptr || list->empty()) {
    return body.fail("messages", "'messages' is missing or empty");
  }
  CallNames names;
  for (size_t i = 0; i < list->size() && body.ok(); ++i) {
    auto message = body.element("messages", i, (*list)[i]);
    if (message) read_message(*message, context, names, request.prompt.messages);
  }
}

void read_logprobs(Fields& body, const ParseContext& context, GenerationParams& params) {
  const bool wants = body.boolean("logprobs").value_or(false);
  const auto top = body.integer("top_logprobs", 0, context.limits.max_top_logprobs);
  if (top && !wants) {
    return body.fail("top_logprobs", "'top_logprobs' is only allowed with logprobs set to true");
  }
  if (wants) params.num_top_logprobs = static_cast<int32_t>(top.value_or(0));
}

void read_lengths(Fields& body, GenerationParams& params) {
  constexpr int64_t kMost = int64_t{1} << 40;
  params.max_tokens = body.integer("max_tokens", 1, kMost);
  if (const auto tokens = body.integer("max_completion_tokens", 1, kMost)) {
    params.max_tokens = tokens;
  }
  if (params.max_tokens && params.min_tokens > *params.max_tokens) {
    body.fail("min_tokens", "'min_tokens' is {}, more than the {} tokens of max_tokens",
              params.min_tokens, *params.max_tokens);
  }
}

void read_thinking(Fields& body, ChatRequest& request) {
  read_reasoning_effort(body, "reasoning_effort", request.prompt.reasoning_effort);
  if (auto reasoning = body.object("reasoning")) {  // OpenRouter's form
    read_reasoning_effort(*reasoning, "effort", request.prompt.reasoning_effort);
    reasoning->note_unread();
  }
  if (auto kwargs = body.object("chat_template_kwargs")) {
    read_reasoning_effort(*kwargs, "reasoning_effort", request.prompt.reasoning_effort);
    kwargs->note_unread();
  }
  request.thinking_budget = body.integer("thinking_token_budget", 0, int64_t{1} << 40);
  request.includes_reasoning = body.boolean("include_reasoning").value_or(true);
}

void read_continuation(Fields& body, ChatRequest& request) {
  request.prompt.continues_last = body.boolean("continue_final_message").value_or(false);
  const bool adds_prompt = body.boolean("add_generation_prompt").value_or(false);
  if (!request.prompt.continues_last || !body.ok()) return;
  if (adds_prompt) {
    return body.fail("continue_final_message",
                     "'continue_final_message' excludes 'add_generation_prompt'");
  }
  const Message& last = request.prompt.messages.back();
  if (last.role != Role::kAssistant || last.channel != "final") {
    body.fail("continue_final_message",
              "'continue_final_message' needs an assistant's text as the last message");
  }
}

ChatRequest read_chat(Fields& body, const ParseContext& context) {
  ChatRequest request;
  request.model = body.text("model", context.limits.max_model_name_bytes).value_or("");
  read_params(body, context, request.params);
  read_lengths(body, request.params);
  read_logprobs(body, context, request.params);
  read_messages(body, context, request);
  ToolSettings tools = read_tools(body, false, context);
  request.tool_choice = std::move(tools.choice);
  // A model that must not call a tool is not told of any.
  if (request.tool_choice.kind != ToolSelection::Kind::kNone) {
    request.prompt.tools = std::move(tools.tools);
    request.strict_tools = std::move(tools.strict);
  }
  body.boolean("parallel_tool_calls");
  read_shape(body, context, request.shape, request.prompt.response_formats);
  read_thinking(body, request);
  read_continuation(body, request);
  return request;
}

}  // namespace

Result<Parsed<ChatRequest>> parse_chat_request(std::string_view text, const ParseContext& context) {
  auto json = parse_body(text, context.limits.json_depth);
  if (!json) return json.error();
  ReadLog log;
  Fields body(json->get_object(), "", log);
  Parsed<ChatRequest> out{.request = read_chat(body, context), .ignored = {}};
  if (log.error) return *log.error;
  body.note_unread();
  out.ignored = std::move(log.ignored);
  return out;
}

}  // namespace briar

#include "server/api/response_builder.h"

#include <fmt/core.h>

#include <utility>

#include "formats/json_text.h"
#include "server/api/chat_reply.h"
#include "server/api/error_json.h"

namespace briar {
namespace {

std::string response_usage_json(const Usage& usage) {
  return fmt::format(
      R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},)"
      R"("output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
      usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens,
      usage.prompt_tokens + usage.completion_tokens);
}

std::string_view id_prefix(Delta::Kind kind) {
  switch (kind) {
    case Delta::Kind::kContent: return "msg";
    case Delta::Kind::kReasoning: return "rs";
    case Delta::Kind::kToolCall: return "fc";
  }
  return "item";
}

std::string number_json(double value) { return json_double(value); }

}  // namespace

std::string_view to_string(ResponseStatus status) {
  switch (status) {
    case ResponseStatus::kQueued: return "queued";
    case ResponseStatus::kInProgress: return "in_progress";
    case ResponseStatus::kCompleted: return "completed";
    case ResponseStatus::kIncomplete: return "incomplete";
    case ResponseStatus::kFailed: return "failed";
    case ResponseStatus::kCancelled: return "cancelled";
  }
  return "failed";
}

ResponseBuilder::ResponseBuilder(const ApiConfig& config, AnswerHead head,
                                 const ResponsesRequest& request, EventSink sink)
    : config_(config),
      head_(std::move(head)),
      params_(request.chat.params),
      echo_(request.echo),
      input_{.messages = request.chat.prompt.messages, .call_names = request.call_names},
      sink_(std::move(sink)),
      is_background_(request.is_background),
      is_stored_(request.is_stored),
      truncates_(request.truncates) {}

void ResponseBuilder::begin() {
  emit_state("response.created");
  emit_state("response.in_progress");
}

void ResponseBuilder::take(std::span<const Delta> deltas, std::span<const ReadToken> tokens) {
  if (params_.num_top_logprobs >= 0) {
    const std::string logprobs = chat_logprobs_json(
        tokens, static_cast<size_t>(params_.num_top_logprobs), *config_.tokenizer);
    if (!pending_logprobs_.empty() && !logprobs.empty()) pending_logprobs_ += ',';
    pending_logprobs_ += logprobs;
  }
  for (const Delta& delta : deltas) {
    const bool is_same =
        !items_.empty() && items_.back().is_open && items_.back().message_idx == delta.message_idx;
    if (!is_same) {
      close_item(true);
      open_item(delta);
    }
    const bool is_answer = delta.kind == Delta::Kind::kContent;
    append(delta.text, is_answer ? std::exchange(pending_logprobs_, {}) : std::string());
  }
}

void ResponseBuilder::open_item(const Delta& delta) {
  Item item;
  item.kind = delta.kind;
  item.message_idx = delta.message_idx;
  item.id = fmt::format("{}_{}_{}", id_prefix(delta.kind), head_.id.substr(head_.id.find('_') + 1),
                        items_.size());
  if (delta.kind == Delta::Kind::kToolCall) {
    item.call_id = new_tool_call_id();
    item.name = delta.tool_name;
  }
  items_.push_back(std::move(item));
  emit("response.output_item.added",
       fmt::format(R"("output_index":{},"item":{})", items_.size() - 1, item_json(items_.back())));
  if (delta.kind == Delta::Kind::kToolCall) return;
  emit("response.content_part.added",
       fmt::format(R"({},"part":{})", place_json(), part_json(items_.back())));
}

void ResponseBuilder::append(const std::string& text, const std::string& logprobs) {
  Item& item = items_.back();
  item.text += text;
  if (!item.logprobs.empty() && !logprobs.empty()) item.logprobs += ',';
  item.logprobs += logprobs;
  if (text.empty() || !sink_) return;
  const std::string delta = json_quote(text);
  switch (item.kind) {
    case Delta::Kind::kContent:
      return emit("response.output_text.delta",
                  fmt::format(R"({},"delta":{},"logprobs":[{}])", place_json(), delta, logprobs));
    case Delta::Kind::kReasoning:
      return emit("response.reasoning_text.delta",
                  fmt::format(R"({},"delta":{})", place_json(), delta));
    case Delta::Kind::kToolCall:
      return emit("response.function_call_arguments.delta",
                  fmt::format(R"({},"delta":{})", place_json(), delta));
  }
}

void ResponseBuilder::close_item(bool is_whole) {
  if (items_.empty() || !items_.back().is_open) return;
  Item& item = items_.back();
  item.is_open = false;
  item.is_whole = is_whole;
  const std::string text = json_quote(item.text);
  if (item.kind == Delta::Kind::kToolCall) {
    emit("response.function_call_arguments.done",
         fmt::format(R"({},"name":{},"arguments":{})", place_json(), json_quote(item.name), text));
  } else {
    const bool is_answer = item.kind == Delta::Kind::kContent;
    emit(is_answer ? "response.output_text.done" : "response.reasoning_text.done",
         fmt::format(R"({},"text":{}{})", place_json(), text,
                     is_answer ? R"(,"logprobs":[)" + item.logprobs + "]" : ""));
    emit("response.content_part.done",
         fmt::format(R"({},"part":{})", place_json(), part_json(item)));
  }
  emit("response.output_item.done",
       fmt::format(R"("output_index":{},"item":{})", items_.size() - 1, item_json(item)));
}

void ResponseBuilder::finish(const ChoiceStatus& status, const Usage& usage) {
  const bool is_cut = status.finish_reason == FinishReason::kLength;
  close_item(!is_cut);
  usage_ = usage;
  if (is_cut || status.is_cut_short) {
    status_ = ResponseStatus::kIncomplete;
    incomplete_reason_ = is_cut ? "max_output_tokens" : "cut_short";
  } else {
    status_ = ResponseStatus::kCompleted;
  }
  emit_state(is_cut || status.is_cut_short ? "response.incomplete" : "response.completed");
}

void ResponseBuilder::fail(const Error& error) {
  close_item(false);
  status_ = ResponseStatus::kFailed;
  error_ = error;
  emit_state("response.failed");
}

std::string ResponseBuilder::part_json(const Item& item) const {
  if (item.kind == Delta::Kind::kReasoning) {
    return fmt::format(R"({{"type":"reasoning_text","text":{}}})", json_quote(item.text));
  }
  return fmt::format(R"({{"type":"output_text","text":{},"annotations":[],"logprobs":[{}]}})",
                     json_quote(item.text), item.logprobs);
}

std::string ResponseBuilder::item_json(const Item& item) const {
  const std::string_view status =
      item.is_open ? "in_progress" : (item.is_whole ? "completed" : "incomplete");
  // An item that has just been opened has no parts yet.
  const std::string parts = item.is_open && item.text.empty() ? "" : part_json(item);
  switch (item.kind) {
    case Delta::Kind::kContent:
      return fmt::format(
          R"({{"id":"{}","type":"message","status":"{}","role":"assistant","content":[{}]}})",
          item.id, status, parts);
    case Delta::Kind::kReasoning:
      return fmt::format(
          R"({{"id":"{}","type":"reasoning","status":"{}","summary":[],"content":[{}]}})", item.id,
          status, parts);
    case Delta::Kind::kToolCall:
      return fmt::format(
          R"({{"id":"{}","type":"function_call","status":"{}","call_id":"{}","name":{},)"
          R"("arguments":{}}})",
          item.id, status, item.call_id, json_quote(item.name), json_quote(item.text));
  }
  return {};
}

std::string ResponseBuilder::place_json() const {
  const Item& item = items_.back();
  return fmt::format(R"("item_id":"{}","output_index":{}{})", item.id, items_.size() - 1,
                     item.kind == Delta::Kind::kToolCall ? "" : R"(,"content_index":0)");
}

void ResponseBuilder::emit(std::string_view type, const std::string& fields) {
  if (!sink_) return;
  sink_(type,
        fmt::format(R"({{"type":"{}","sequence_number":{},{}}})", type, num_events_++, fields));
}

void ResponseBuilder::emit_state(std::string_view type) {
  if (sink_) emit(type, R"("response":)" + json());
}

std::string ResponseBuilder::json() const {
  std::string output;
  for (const Item& item : items_) output += (output.empty() ? "" : ",") + item_json(item);
  const SamplingDefaults& defaults = config_.defaults;
  const std::string max_tokens =
      params_.max_tokens ? std::to_string(*params_.max_tokens) : std::string("null");
  std::string out = fmt::format(
      R"({{"id":{},"object":"response","created_at":{},"status":"{}","background":{},)"
      R"("error":{},"incomplete_details":{},"instructions":{},"max_output_tokens":{},)",
      json_quote(head_.id), head_.created, to_string(status_), is_background_,
      error_ ? response_error_json(*error_) : "null",
      incomplete_reason_.empty() ? "null" : fmt::format(R"({{"reason":"{}"}})", incomplete_reason_),
      echo_.instructions, max_tokens);
  out += fmt::format(R"("model":{},"output":[{}],"parallel_tool_calls":{},)"
                     R"("previous_response_id":{},"reasoning":{{"effort":{},"summary":null}},)"
                     R"("service_tier":"default","store":{},"temperature":{},"text":{},)",
                     json_quote(head_.model), output, echo_.parallel_tool_calls,
                     echo_.previous_response_id, echo_.effort, is_stored_,
                     number_json(params_.temperature.value_or(defaults.temperature)), echo_.text);
  out += fmt::format(
      R"("tool_choice":{},"tools":{},"top_logprobs":{},"top_p":{},"truncation":"{}","usage":{},)"
      R"("user":{},"metadata":{}}})",
      echo_.tool_choice, echo_.tools, std::max(params_.num_top_logprobs, 0),
      number_json(params_.top_p.value_or(defaults.top_p)), truncates_ ? "auto" : "disabled",
      usage_ ? response_usage_json(*usage_) : "null", echo_.user, echo_.metadata);
  return out;
}

Conversation ResponseBuilder::conversation() const {
  Conversation all = input_;
  for (const Item& item : items_) {
    switch (item.kind) {
      case Delta::Kind::kContent: all.messages.push_back(answer_message(item.text)); break;
      case Delta::Kind::kReasoning: all.messages.push_back(reasoning_message(item.text)); break;
      case Delta::Kind::kToolCall:
        all.messages.push_back(tool_call_message(item.name, item.text));
        all.call_names[item.call_id] = item.name;
        break;
    }
  }
  return all;
}

}  // namespace briar

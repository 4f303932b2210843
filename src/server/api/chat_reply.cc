#include "server/api/chat_reply.h"

#include <fmt/core.h>

#include <random>
#include <utility>

#include "formats/json_text.h"

namespace briar {
namespace {

std::string head_json(const AnswerHead& head, std::string_view object) {
  return fmt::format(R"({{"id":{},"object":"{}","created":{},"model":{},"choices":[)",
                     json_quote(head.id), object, head.created, json_quote(head.model));
}

}  // namespace

std::string new_tool_call_id() {
  thread_local std::mt19937_64 random(uint64_t{std::random_device{}()} << 32 |
                                      std::random_device{}());
  return fmt::format("call_{:016x}{:08x}", random(), random() >> 32);
}

ChatReply::ChatReply(Setup setup, Options options)
    : AnswerReply(std::move(setup)),
      options_(std::move(options)),
      chunk_begin_(head_json(head(), "chat.completion.chunk")),
      choices_(static_cast<size_t>(params().n)) {}

void ChatReply::stream_begin() {
  for (size_t i = 0; i < choices_.size(); ++i) {
    std::string ids;
    if (i == 0 && params().returns_token_ids) {
      ids = R"(,"prompt_token_ids":)" + ids_json(options_.prompt);
    }
    send(
        fmt::format(R"({}{{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,)"
                    R"("finish_reason":null}}]{}{}}})",
                    chunk_begin_, i, ids, chunk_usage()));
  }
}

void ChatReply::stream(size_t idx, Deltas deltas, Tokens tokens) {
  Choice& choice = choices_[idx];
  take_tokens(choice, tokens);
  for (const Delta& delta : deltas) {
    const std::string json = delta_json(choice, delta);
    if (!json.empty()) send_chunk(idx, json, R"("finish_reason":null)");
  }
  if (generation().status(idx).finish_reason != FinishReason::kNone) {
    send_chunk(idx, "{}", ending_json(idx));
  }
}

void ChatReply::take_tokens(Choice& choice, Tokens tokens) {
  if (params().returns_token_ids) {
    for (const ReadToken& read : tokens) choice.token_ids.push_back(read.token.token_id);
  }
  if (params().num_top_logprobs < 0) return;
  const std::string json = chat_logprobs_json(
      tokens, static_cast<size_t>(params().num_top_logprobs), *config().tokenizer);
  if (!choice.logprobs.empty() && !json.empty()) choice.logprobs += ',';
  choice.logprobs += json;
}

std::string ChatReply::delta_json(Choice& choice, const Delta& delta) {
  const std::string text = json_quote(delta.text);
  if (delta.kind == Delta::Kind::kContent) return fmt::format(R"({{"content":{}}})", text);
  if (delta.kind == Delta::Kind::kReasoning) {
    if (!options_.includes_reasoning) return {};
    return fmt::format(R"({{"reasoning_content":{0},"reasoning":{0}}})", text);
  }
  if (delta.tool_name.empty()) {
    return fmt::format(R"({{"tool_calls":[{{"index":{},"function":{{"arguments":{}}}}}]}})",
                       delta.tool_call_idx, text);
  }
  choice.calls.emplace_back();
  return fmt::format(R"({{"tool_calls":[{{"index":{},"id":"{}","type":"function",)"
                     R"("function":{{"name":{},"arguments":{}}}}}]}})",
                     delta.tool_call_idx, new_tool_call_id(), json_quote(delta.tool_name), text);
}

void ChatReply::send_chunk(size_t idx, std::string_view delta, std::string_view ending) {
  Choice& choice = choices_[idx];
  std::string ids;
  if (params().returns_token_ids) {
    ids = R"(,"token_ids":)" + ids_json(std::exchange(choice.token_ids, {}));
  }
  send(fmt::format(R"({}{{"index":{},"delta":{},"logprobs":{},{}{}}}]{}}})", chunk_begin_, idx,
                   delta, logprobs_json(choice), ending, ids, chunk_usage()));
}

std::string ChatReply::logprobs_json(Choice& choice) const {
  if (params().num_top_logprobs < 0) return "null";
  return fmt::format(R"({{"content":[{}],"refusal":null}})",
                     std::exchange(choice.logprobs, std::string()));
}

std::string ChatReply::ending_json(size_t idx) const {
  const ChoiceStatus& status = generation().status(idx);
  return fmt::format(R"("finish_reason":"{}","stop_reason":{}{})",
                     finish_word(status, !choices_[idx].calls.empty()),
                     stop_reason_json(status, own_stop_ids()),
                     status.is_cut_short ? R"(,"is_cut_short":true)" : "");
}

void ChatReply::keep(size_t idx, Deltas deltas, Tokens tokens) {
  Choice& choice = choices_[idx];
  take_tokens(choice, tokens);
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::kContent: choice.content += delta.text; break;
      case Delta::Kind::kReasoning: choice.reasoning += delta.text; break;
      case Delta::Kind::kToolCall:
        if (!delta.tool_name.empty()) {
          choice.calls.push_back(
              {.id = new_tool_call_id(), .name = delta.tool_name, .arguments = {}});
        }
        choice.calls.back().arguments += delta.text;
        break;
    }
  }
}

std::string ChatReply::message_json(const Choice& choice) const {
  std::string calls;
  for (const ToolCall& call : choice.calls) {
    if (!calls.empty()) calls += ',';
    calls +=
        fmt::format(R"({{"id":"{}","type":"function","function":{{"name":{},"arguments":{}}}}})",
                    call.id, json_quote(call.name), json_quote(call.arguments));
  }
  const bool has_content = !choice.content.empty() || calls.empty();
  const bool has_reasoning = options_.includes_reasoning && !choice.reasoning.empty();
  return fmt::format(
      R"({{"role":"assistant","content":{},"refusal":null,"reasoning_content":{},"reasoning":{}{}}})",
      has_content ? json_quote(choice.content) : "null",
      has_reasoning ? json_quote(choice.reasoning) : "null",
      has_reasoning ? json_quote(choice.reasoning) : "null",
      calls.empty() ? "" : R"(,"tool_calls":[)" + calls + "]");
}

std::string ChatReply::choice_json(size_t idx) {
  Choice& choice = choices_[idx];
  std::string ids;
  if (params().returns_token_ids) ids = R"(,"token_ids":)" + ids_json(choice.token_ids);
  return fmt::format(R"({{"index":{},"message":{},"logprobs":{},{}{}}})", idx, message_json(choice),
                     logprobs_json(choice), ending_json(idx), ids);
}

std::string ChatReply::whole() {
  std::string out = head_json(head(), "chat.completion");
  for (size_t i = 0; i < choices_.size(); ++i) out += (i > 0 ? "," : "") + choice_json(i);
  out += R"(],"usage":)" + usage_json(usage());
  if (params().returns_token_ids) out += R"(,"prompt_token_ids":)" + ids_json(options_.prompt);
  return out + "}";
}

std::string ChatReply::usage_chunk(const Usage& usage) {
  return chunk_begin_ + R"(],"usage":)" + usage_json(usage) + "}";
}

}  // namespace briar

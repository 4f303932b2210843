#include "server/api/answer_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/json_text.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

constexpr float kLogprobFloor = -9999;

std::string bytes_of(const Tokenizer& tokenizer, int32_t id) {
  return std::string(tokenizer.token_bytes(id).value_or(""));
}

std::string bytes_json(std::string_view bytes) {
  std::string out = "[";
  for (const char c : bytes) {
    if (out.size() > 1) out += ',';
    out += std::to_string(static_cast<unsigned char>(c));
  }
  return out + "]";
}

std::string chat_token_json(const Tokenizer& tokenizer, int32_t id, float logprob) {
  const std::string bytes = bytes_of(tokenizer, id);
  return fmt::format(R"("token":{},"logprob":{},"bytes":{})", json_quote(lossy_utf8(bytes)),
                     logprob_json(logprob), bytes_json(bytes));
}

// Bytes that are no text are spelled out, for these are keys: they must differ.
std::string completion_token_text(const Tokenizer& tokenizer, int32_t id) {
  const std::string bytes = bytes_of(tokenizer, id);
  if (lossy_utf8(bytes) == bytes) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ',';
  list += item;
}

}  // namespace

Usage usage_of(const Generation& generation, size_t choices_per_prompt) {
  Usage usage;
  for (size_t i = 0; i < generation.num_choices(); ++i) {
    const ChoiceStatus& status = generation.status(i);
    if (i % choices_per_prompt == 0) {
      usage.prompt_tokens += status.num_prompt_tokens;
      usage.cached_tokens += status.num_cached_tokens;
    }
    usage.completion_tokens += status.num_tokens;
    usage.reasoning_tokens += status.num_reasoning_tokens;
  }
  return usage;
}

std::string usage_json(const Usage& usage) {
  return fmt::format(R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                     R"("prompt_tokens_details":{{"cached_tokens":{}}},)"
                     R"("completion_tokens_details":{{"reasoning_tokens":{}}}}})",
                     usage.prompt_tokens, usage.completion_tokens,
                     usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens,
                     usage.reasoning_tokens);
}

std::string_view finish_word(const ChoiceStatus& status, bool has_tool_calls) {
  // A message that was announced and never opened is not a finished answer.
  if (status.finish_reason == FinishReason::kLength || status.is_cut_short) return "length";
  return has_tool_calls ? "tool_calls" : "stop";
}

std::string stop_reason_json(const ChoiceStatus& status, std::span<const int32_t> own_stop_ids) {
  if (status.stop_string) return json_quote(*status.stop_string);
  const auto& token = status.stop_token;
  const bool is_own =
      token && std::find(own_stop_ids.begin(), own_stop_ids.end(), *token) != own_stop_ids.end();
  return token && !is_own ? std::to_string(*token) : "null";
}

std::string logprob_json(float logprob) {
  return fmt::format("{}", logprob >= kLogprobFloor ? logprob : kLogprobFloor);
}

std::string ids_json(std::span<const int32_t> ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

std::string chat_logprobs_json(std::span<const ReadToken> tokens, size_t num_top,
                               const Tokenizer& tokenizer) {
  std::string out;
  for (const ReadToken& read : tokens) {
    if (!read.is_answer) continue;
    const OutputToken& token = read.token;
    std::string top;
    for (size_t i = 0; i < std::min(num_top, token.top.size()); ++i) {
      const TokenLogprobs& other = token.top[i];
      append(top, "{" + chat_token_json(tokenizer, other.token_id, other.logprob) + "}");
    }
    append(out, fmt::format(R"({{{},"top_logprobs":[{}]}})",
                            chat_token_json(tokenizer, token.token_id, token.logprob), top));
  }
  return out;
}

void CompletionLogprobs::add_unknown(int32_t id) { add_piece(id, "null", "null"); }

void CompletionLogprobs::add(const OutputToken& token) {
  std::string top;
  bool has_chosen = false;
  for (size_t i = 0; i < std::min(num_top_, token.top.size()); ++i) {
    const TokenLogprobs& other = token.top[i];
    has_chosen |= other.token_id == token.token_id;
    append(top, json_quote(completion_token_text(tokenizer_, other.token_id)) + ":" +
                    logprob_json(other.logprob));
  }
  if (!has_chosen) {
    append(top, json_quote(completion_token_text(tokenizer_, token.token_id)) + ":" +
                    logprob_json(token.logprob));
  }
  add_piece(token.token_id, logprob_json(token.logprob), "{" + top + "}");
}

void CompletionLogprobs::add_piece(int32_t id, std::string logprob, std::string top) {
  append(tokens_, json_quote(completion_token_text(tokenizer_, id)));
  append(logprobs_, logprob);
  append(tops_, top);
  append(offsets_, std::to_string(num_characters_));
  num_characters_ += count_characters(tokenizer_.token_bytes(id).value_or(""));
}

std::string CompletionLogprobs::take_json() {
  std::string out = fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens_,
      logprobs_, tops_, offsets_);
  for (std::string* list : {&tokens_, &logprobs_, &tops_, &offsets_}) list->clear();
  return out;
}

}  // namespace briar

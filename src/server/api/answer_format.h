// Typed results to the JSON that OpenAI's clients read: what chat and text completions share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/generation.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Said in every object of one answer.
struct AnswerHead {
  std::string id;
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;
};

// Of all choices. Choices of one prompt count it once: choice i belongs to prompt i / per_prompt.
Usage usage_of(const Generation& generation, size_t choices_per_prompt);
// {"prompt_tokens", ..., "prompt_tokens_details", "completion_tokens_details"}
std::string usage_json(const Usage& usage);

// stop, length or tool_calls.
std::string_view finish_word(const ChoiceStatus& status, bool has_tool_calls);
// "stop_reason", as vLLM has it: the stop string or the id of the caller's stop token that ended
// the choice, else null. `own_stop_ids` end every answer and are no reason worth telling.
std::string stop_reason_json(const ChoiceStatus& status, std::span<const int32_t> own_stop_ids);

// A finite number whatever the logarithm is: -9999 stands for minus infinity.
std::string logprob_json(float logprob);
std::string ids_json(std::span<const int32_t> ids);

// [{"token", "logprob", "bytes", "top_logprobs"}, ...] of the tokens of the answer's text, without
// the brackets.
std::string chat_logprobs_json(std::span<const ReadToken> tokens, size_t num_top,
                               const Tokenizer& tokenizer);

// The "logprobs" object of a text completion, filled token by token.
class CompletionLogprobs {
 public:
  CompletionLogprobs(const Tokenizer& tokenizer, size_t num_top)
      : tokenizer_(tokenizer), num_top_(num_top) {}

  // Whose probability the engine does not tell: the first of a prompt.
  void add_unknown(int32_t id);
  void add(const OutputToken& token);
  bool empty() const { return tokens_.empty(); }
  // What was added since the last call.
  std::string take_json();

 private:
  void add_piece(int32_t id, std::string logprob, std::string top);

  const Tokenizer& tokenizer_;
  const size_t num_top_;
  int64_t num_characters_ = 0;  // of all tokens so far
  std::string tokens_, logprobs_, tops_, offsets_;
};

}  // namespace briar

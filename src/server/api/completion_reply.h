// The answer of /v1/completions, streamed or whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answer_reply.h"

namespace briar {

class CompletionReply final : public AnswerReply {
 public:
  struct Options {
    std::vector<std::vector<int32_t>> prompts;
    int best_of = 1;    // choices generated for each prompt; the n likeliest are answered
    bool echo = false;  // the text begins with the prompt's
    bool wants_prompt_logprobs = false;  // as a field of its own
  };

  CompletionReply(Setup setup, Options options);

 protected:
  void stream(size_t choice, Deltas deltas, Tokens tokens) override;
  void keep(size_t choice, Deltas deltas, Tokens tokens) override;
  std::string whole() override;
  std::string usage_chunk(const Usage& usage) override;

 private:
  struct Choice {
    std::string text;  // not yet sent
    std::optional<CompletionLogprobs> logprobs;
    std::vector<int32_t> token_ids;  // not yet sent
    bool has_begun = false;
    double sum_logprob = 0;
  };

  void take(size_t idx, Deltas deltas, Tokens tokens);
  void echo_prompt(size_t idx);
  const std::vector<int32_t>& prompt_of(size_t idx) const;
  std::string choice_json(size_t idx, size_t shown_idx);
  std::string prompt_logprobs_json(size_t idx) const;
  std::vector<size_t> best_choices() const;

  const Options options_;
  std::string begin_;  // up to the list of choices
  std::vector<Choice> choices_;
};

}  // namespace briar

#include "server/api/completion_reply.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/json_text.h"
#include "tokenizer/utf8.h"

namespace briar {

CompletionReply::CompletionReply(Setup setup, Options options)
    : AnswerReply(std::move(setup)),
      options_(std::move(options)),
      begin_(
          fmt::format(R"({{"id":{},"object":"text_completion","created":{},"model":{},"choices":[)",
                      json_quote(head().id), head().created, json_quote(head().model))),
      choices_(options_.prompts.size() * static_cast<size_t>(options_.best_of)) {
  if (params().num_top_logprobs < 0) return;
  for (Choice& choice : choices_) {
    choice.logprobs.emplace(*config().tokenizer, static_cast<size_t>(params().num_top_logprobs));
  }
}

const std::vector<int32_t>& CompletionReply::prompt_of(size_t idx) const {
  return options_.prompts[idx / static_cast<size_t>(options_.best_of)];
}

void CompletionReply::echo_prompt(size_t idx) {
  Choice& choice = choices_[idx];
  const std::vector<int32_t>& prompt = prompt_of(idx);
  choice.text = config().tokenizer->decode(prompt);
  if (!choice.logprobs) return;
  const std::vector<float>& logprobs = generation().status(idx).prompt_logprobs;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (i == 0 || i > logprobs.size()) {
      choice.logprobs->add_unknown(prompt[i]);
    } else {
      choice.logprobs->add({.token_id = prompt[i], .logprob = logprobs[i - 1], .top = {}});
    }
  }
}

void CompletionReply::take(size_t idx, Deltas deltas, Tokens tokens) {
  Choice& choice = choices_[idx];
  if (!std::exchange(choice.has_begun, true) && options_.echo) echo_prompt(idx);
  for (const Delta& delta : deltas) choice.text += delta.text;
  for (const ReadToken& read : tokens) {
    choice.sum_logprob += read.token.logprob;
    if (choice.logprobs) choice.logprobs->add(read.token);
    if (params().returns_token_ids) choice.token_ids.push_back(read.token.token_id);
  }
}

void CompletionReply::stream(size_t idx, Deltas deltas, Tokens tokens) {
  take(idx, deltas, tokens);
  const Choice& choice = choices_[idx];
  const bool has_ended = generation().status(idx).finish_reason != FinishReason::kNone;
  if (choice.text.empty() && !has_ended) return;
  send(begin_ + choice_json(idx, idx) + "]" + chunk_usage() + "}");
}

void CompletionReply::keep(size_t idx, Deltas deltas, Tokens tokens) { take(idx, deltas, tokens); }

std::string CompletionReply::choice_json(size_t idx, size_t shown_idx) {
  Choice& choice = choices_[idx];
  const ChoiceStatus& status = generation().status(idx);
  const bool has_ended = status.finish_reason != FinishReason::kNone;
  std::string ids;
  if (params().returns_token_ids) {
    ids = fmt::format(R"(,"prompt_token_ids":{},"token_ids":{})", ids_json(prompt_of(idx)),
                      ids_json(std::exchange(choice.token_ids, {})));
  }
  return fmt::format(
      R"({{"index":{},"text":{},"logprobs":{},"finish_reason":{},"stop_reason":{}{}{}}})",
      shown_idx, json_quote(std::exchange(choice.text, std::string())),
      choice.logprobs && !choice.logprobs->empty() ? choice.logprobs->take_json() : "null",
      has_ended ? fmt::format("\"{}\"", finish_word(status, false)) : "null",
      stop_reason_json(status, own_stop_ids()), prompt_logprobs_json(idx), ids);
}

std::string CompletionReply::prompt_logprobs_json(size_t idx) const {
  if (!options_.wants_prompt_logprobs) return {};
  const std::vector<int32_t>& prompt = prompt_of(idx);
  const std::vector<float>& logprobs = generation().status(idx).prompt_logprobs;
  std::string out = R"(,"prompt_logprobs":[null)";
  for (size_t i = 1; i < prompt.size() && i <= logprobs.size(); ++i) {
    const int32_t id = prompt[i];
    out += fmt::format(R"(,{{"{}":{{"logprob":{},"decoded_token":{}}}}})", id,
                       logprob_json(logprobs[i - 1]),
                       json_quote(lossy_utf8(config().tokenizer->token_bytes(id).value_or(""))));
  }
  return out + "]";
}

// Of each prompt's choices, the n whose tokens were likeliest on average.
std::vector<size_t> CompletionReply::best_choices() const {
  const auto per_prompt = static_cast<size_t>(options_.best_of);
  std::vector<size_t> best;
  for (size_t prompt = 0; prompt < options_.prompts.size(); ++prompt) {
    std::vector<size_t> order;
    for (size_t i = 0; i < per_prompt; ++i) order.push_back(prompt * per_prompt + i);
    const auto score = [&](size_t idx) {
      const auto num_tokens = std::max<int64_t>(generation().status(idx).num_tokens, 1);
      const double mean = choices_[idx].sum_logprob / static_cast<double>(num_tokens);
      return std::isnan(mean) ? -HUGE_VAL : mean;
    };
    if (options_.best_of > params().n) {
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return score(a) > score(b); });
    }
    order.resize(static_cast<size_t>(params().n));
    best.insert(best.end(), order.begin(), order.end());
  }
  return best;
}

std::string CompletionReply::whole() {
  std::string out = begin_;
  size_t shown_idx = 0;
  for (const size_t idx : best_choices()) {
    if (shown_idx > 0) out += ',';
    out += choice_json(idx, shown_idx++);
  }
  return out + R"(],"usage":)" + usage_json(usage()) + "}";
}

std::string CompletionReply::usage_chunk(const Usage& usage) {
  return begin_ + R"(],"usage":)" + usage_json(usage) + "}";
}

}  // namespace briar

#include "engine/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "engine/sampling_stage.h"

namespace briar {
namespace {

template <class... Args>
Error bad(const char* param, fmt::format_string<Args...> text, Args&&... args) {
  return Error{.message = fmt::format(text, std::forward<Args>(args)...), .param = param};
}

Status check_prompt(const Request& r, const ModelDescription& model) {
  if (r.prompt.empty()) return bad("prompt", "the prompt is empty");
  if (r.max_tokens < 0) {
    return bad("max_tokens", "max_tokens is {}, expected 0 or more", r.max_tokens);
  }
  const auto num_prompt = static_cast<int64_t>(r.prompt.size());
  if (num_prompt + (r.max_tokens > 0 ? 1 : 0) > model.max_model_len) {
    return bad("prompt", "the prompt has {} tokens; prompt and answer together may have {}",
               num_prompt, model.max_model_len);
  }
  for (size_t i = 0; i < r.prompt.size(); ++i) {
    if (r.prompt[i] < 0 || r.prompt[i] >= model.vocab_size) {
      return bad("prompt", "prompt[{}] is the id {}, outside the vocabulary of {}", i, r.prompt[i],
                 model.vocab_size);
    }
  }
  return Ok{};
}

// A NaN is in no range.
bool is_in(float value, float low, float high) { return value >= low && value <= high; }

Status check_distribution(const SamplingParams& s) {
  if (!is_in(s.temperature, 0, 100)) {
    return bad("temperature", "temperature is {}, expected 0 to 100", s.temperature);
  }
  if (!(s.top_p > 0 && s.top_p <= 1)) {
    return bad("top_p", "top_p is {}, expected more than 0 and at most 1", s.top_p);
  }
  if (!is_in(s.min_p, 0, 1)) return bad("min_p", "min_p is {}, expected 0 to 1", s.min_p);
  if (s.top_k < 0) return bad("top_k", "top_k is {}, expected 0 (off) or more", s.top_k);
  if (!(s.repetition_penalty > 0 && s.repetition_penalty <= 100)) {
    return bad("repetition_penalty",
               "repetition_penalty is {}, expected more than 0 and at most 100",
               s.repetition_penalty);
  }
  if (!is_in(s.frequency_penalty, -100, 100)) {
    return bad("frequency_penalty", "frequency_penalty is {}, expected -100 to 100",
               s.frequency_penalty);
  }
  if (!is_in(s.presence_penalty, -100, 100)) {
    return bad("presence_penalty", "presence_penalty is {}, expected -100 to 100",
               s.presence_penalty);
  }
  return Ok{};
}

Status check_token_lists(const Request& r, int64_t num_token_ids) {
  const SamplingParams& s = r.sampling;
  std::unordered_set<int32_t> seen;
  for (const LogitBias& b : s.logit_bias) {
    if (b.token_id < 0 || b.token_id >= num_token_ids) {
      return bad("logit_bias", "logit_bias names the id {}, outside the vocabulary of {}",
                 b.token_id, num_token_ids);
    }
    if (!is_in(b.bias, -100, 100)) {
      return bad("logit_bias", "logit_bias of the id {} is {}, expected -100 to 100", b.token_id,
                 b.bias);
    }
    if (!seen.insert(b.token_id).second) {
      return bad("logit_bias", "logit_bias names the id {} twice", b.token_id);
    }
  }
  for (const int32_t id : s.allowed_token_ids) {
    if (id < 0 || id >= num_token_ids) {
      return bad("allowed_token_ids",
                 "allowed_token_ids names the id {}, outside the vocabulary of {}", id,
                 num_token_ids);
    }
  }
  if (s.min_tokens < 0 || s.min_tokens > r.max_tokens) {
    return bad("min_tokens", "min_tokens is {}, expected 0 to max_tokens, which is {}",
               s.min_tokens, r.max_tokens);
  }
  for (const int32_t id : r.stop_token_ids) {
    if (id < 0) return bad("stop_token_ids", "stop_token_ids names the id {}", id);
  }
  return Ok{};
}

}  // namespace

Status check_request(const Request& r, const ModelDescription& model, int64_t num_token_ids) {
  if (Status status = check_prompt(r, model); !status) return status;
  if (Status status = check_distribution(r.sampling); !status) return status;
  if (Status status = check_token_lists(r, num_token_ids); !status) return status;
  const int64_t most = std::min<int64_t>(kMaxTopLogprobs, num_token_ids);
  if (r.num_top_logprobs < -1 || r.num_top_logprobs > most) {
    return bad("logprobs",
               "{} likeliest tokens asked for, expected -1 (no log-probabilities) to {}",
               r.num_top_logprobs, most);
  }
  return Ok{};
}

}  // namespace briar

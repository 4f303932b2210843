// What a runner reports of one step.
#pragma once

#include <cstdint>
#include <vector>

namespace briar {

struct TokenLogprob {
  int32_t token_id = -1;
  float logprob = 0;
};

// One sampled token. num_top_logprobs of the request decides how long `top` is.
struct SampledToken {
  int32_t token_id = -1;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

struct SequenceResult {
  int32_t row = 0;
  int32_t length = 0;                 // tokens with KV after the step, as the device counts them
  bool has_nan = false;               // the error word: a logit was NaN, nothing was sampled
  bool has_no_choice = false;         // no token may be drawn, nothing was sampled
  std::vector<SampledToken> sampled;  // at most 1 today, up to k + 1 with k draft tokens
  std::vector<float>
      prompt_logprobs;  // of given tokens [1, n) and of the next token where it was known
  std::vector<float> hidden_states;  // [num_tokens, hidden_size], if asked for
};

struct StepResult {
  uint64_t step_id = 0;
  std::vector<SequenceResult> sequences;  // in the packet's order
  // When the device worked on it, in microseconds of the steady clock.
  double begin_us = 0;
  double sampling_us = 0;  // the forward pass was over
  double end_us = 0;
};

}  // namespace briar

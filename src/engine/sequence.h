// One request as the engine tracks it. Owned by the engine's thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "batch/kv_kind.h"
#include "briar/engine.h"
#include "kvcache/page_key.h"
#include "kvcache/sequence_pages.h"

namespace briar {

struct Sequence {
  Sequence(uint64_t id, Request request, std::array<SequencePages, kNumKvKinds> pages)
      : id(id), request(std::move(request)), pages(std::move(pages)) {
    tokens = this->request.prompt;
  }

  int64_t num_prompt() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t num_generated() const { return static_cast<int64_t>(tokens.size()) - num_prompt(); }
  // Tokens that are known, or will be when the steps in flight have reported, and have no KV after
  // those steps. With draft tokens in flight these are upper bounds; their difference is exact.
  int64_t num_pending() const {
    return static_cast<int64_t>(tokens.size()) + num_unknown - num_computed - num_in_flight;
  }
  // Whether there is anything to compute for it once the steps in flight are done.
  bool has_work() const {
    const bool ends_by_length =
        num_draws_in_flight > 0 && num_generated() + num_draws_in_flight >= request.max_tokens;
    return num_pending() >= 1 && !ends_by_length;
  }
  // The next token to run is one that the model drew: not a prompt, nor a recomputation.
  bool is_decoding() const { return is_last_token_on_device && num_pending() == 1; }

  uint64_t id;
  Request request;
  std::vector<int32_t> tokens;  // prompt, then generated, as far as the host knows
  int64_t num_computed = 0;     // tokens with KV, all confirmed
  // Of steps whose results are not in yet: tokens they run, tokens they may draw, and how many of
  // them draw at least one.
  int64_t num_in_flight = 0;
  int64_t num_unknown = 0;
  int64_t num_draws_in_flight = 0;
  int32_t row = -1;              // device row while running
  bool is_new_to_device = true;  // the next step tells the device its length
  // The row's last sampled id is this sequence's last token: a step need not send it. Not so after
  // a preemption, when the row may have been another sequence's.
  bool is_last_token_on_device = false;
  std::array<SequencePages, kNumKvKinds> pages;
  // Up to which index of its page tables the row has been told.
  std::array<int32_t, kNumKvKinds> pages_on_device{};
  std::vector<PageKey> page_keys;   // of the first full pages of `tokens`, computed or not
  int64_t num_published_pages = 0;  // how many of them the page pools have been told of
  int64_t num_cached_tokens = 0;    // of the prompt, found in the cache when first admitted
  std::vector<float> prompt_logprobs;
  // Log-probabilities of the prompt received so far; a recomputation does not give them again.
  int64_t num_prompt_scored = 0;
  // Tokens whose hidden states were handed out; a recomputation does not give them again.
  int64_t num_hidden_reported = 0;
  // The engine's own: steps whose results name this sequence, and whether its last output is out.
  int num_outstanding_steps = 0;
  bool has_ended = false;
  double submit_us = 0;  // steady clock
  double queue_us = -1;  // until its first step was planned; -1 = not yet
};

}  // namespace briar

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
  // Tokens that are known but have no KV yet.
  int64_t num_pending() const { return static_cast<int64_t>(tokens.size()) - num_computed; }

  uint64_t id;
  Request request;
  std::vector<int32_t> tokens;   // prompt, then generated
  int64_t num_computed = 0;      // tokens with KV, all confirmed
  int32_t row = -1;              // device row while running
  bool is_new_to_device = true;  // the next step tells the device its length
  // The row's last sampled id is this sequence's last token: a step need not send it. Not so after
  // a preemption, when the row may have been another sequence's.
  bool is_last_token_on_device = false;
  std::array<SequencePages, kNumKvKinds> pages;
  std::vector<PageKey> page_keys;   // of the first full pages of `tokens`, computed or not
  int64_t num_published_pages = 0;  // how many of them the page pools have been told of
  int64_t num_cached_tokens = 0;    // of the prompt, found in the cache when first admitted
  std::vector<float> prompt_logprobs;
  // Log-probabilities of the prompt received so far; a recomputation does not give them again.
  int64_t num_prompt_scored = 0;
};

}  // namespace briar

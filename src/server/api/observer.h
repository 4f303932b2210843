// What the API tells whoever keeps metrics.
#pragma once

#include <cstdint>
#include <string_view>

#include "briar/engine.h"

namespace briar {

struct ChoiceReport {
  FinishReason finish_reason = FinishReason::kNone;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_tokens = 0;
  double queue_s = 0;  // from submission to its first step
  double total_s = 0;  // from submission to its end
};

// Called from the strands of many clients at once.
class ApiObserver {
 public:
  virtual ~ApiObserver() = default;
  // The choice's first tokens came this long after its submission.
  virtual void on_first_tokens(double seconds) = 0;
  // `num_tokens` more came this long after the ones before.
  virtual void on_more_tokens(double seconds, int64_t num_tokens) = 0;
  virtual void on_choice_end(const ChoiceReport& report) = 0;
};

}  // namespace briar

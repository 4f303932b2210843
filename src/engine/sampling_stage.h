// The stage after the forward pass: from rows of logits to tokens and log-probabilities.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/step_result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/sampling/logit_adjustment.h"
#include "kernels/sampling/sampler.h"

namespace briar {

struct StageRow {
  SamplingRow sampling;
  bool samples = false;                         // draw a token
  int32_t scored_token = -1;                    // report this id's log-probability
  int32_t num_top_logprobs = -1;                // of the drawn token: -1 = no log-probabilities
  const LogitAdjustment* adjustment = nullptr;  // of the draw; log-probabilities do not see it
};

struct StageResult {
  bool has_nan = false;
  bool has_no_choice = false;  // the adjustment forbids every token
  float scored_logprob = 0;
  SampledToken sampled;
};

inline constexpr int32_t kMaxTopLogprobs = 64;

// logits: [rows.size(), vocab_size] fp32. Ids from `num_token_ids` on are never drawn.
std::vector<StageResult> run_sampling_stage(Stream& stream, Arena& scratch,
                                            const TensorView& logits, int64_t num_token_ids,
                                            std::span<const StageRow> rows);

// The most it takes from `scratch` for this many rows.
int64_t sampling_stage_bytes(int64_t num_rows, int64_t vocab_size);

}  // namespace briar

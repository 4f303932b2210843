// What rows ask of their logits in one piece of memory, for one copy to the device.
#pragma once

#include <vector>

#include "kernels/sampling/logit_adjustment.h"

namespace briar::sm90 {

// One row. Lists are places in PackedAdjustments::words.
struct PackedAdjustment {
  int64_t row = 0;
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  int32_t num_history = 0, num_biases = 0;
  bool has_mask = false;
  int64_t history_ids = 0, history_counts = 0, bias_ids = 0, biases = 0;
  int64_t mask = 0;  // ceil(vocab_size / 32) words: allowed ids, banned ids and mask as one
};

struct PackedAdjustments {
  std::vector<PackedAdjustment> rows;
  std::vector<uint32_t> words;
};

// Rows from `first_row` on, as many as fit into `max_bytes`; a CHECK fails if that is none.
PackedAdjustments pack_adjustments(const LogitAdjustmentArgs& args, int64_t first_row,
                                   int64_t max_bytes);

}  // namespace briar::sm90

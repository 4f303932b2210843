// What a device row keeps of its sequence's wishes for drawing tokens, from its first step on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/step_packet.h"
#include "kernels/sampling/logit_adjustment.h"

namespace briar {

struct RowRequest {
  // A token was drawn: penalties count it.
  void count(int32_t token_id);

  std::vector<int32_t> bias_ids;
  std::vector<float> biases;
  std::vector<int32_t> allowed_ids;
  std::vector<int32_t> stop_ids;
  bool has_penalties = false;
  std::vector<int32_t> history_ids;     // distinct
  std::vector<int32_t> history_counts;  // how often the answer has each
};

// Null if the sequence asks for nothing. Ids from `num_token_ids` on are never drawn and are left
// out.
std::unique_ptr<RowRequest> make_row_request(const StepSequence& sequence, const RowSetup& setup,
                                             int64_t num_token_ids);

// Fills in what applies to this step's draw; false if nothing does. `row` may be null.
bool make_adjustment(const StepSequence& sequence, const RowRequest* row,
                     std::span<const uint32_t> mask, LogitAdjustment& adjustment);

}  // namespace briar

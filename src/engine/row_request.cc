#include "engine/row_request.h"

#include <algorithm>

namespace briar {

void RowRequest::count(int32_t token_id) {
  if (!has_penalties) return;
  const auto at = std::find(history_ids.begin(), history_ids.end(), token_id);
  if (at == history_ids.end()) {
    history_ids.push_back(token_id);
    history_counts.push_back(1);
  } else {
    ++history_counts[static_cast<size_t>(at - history_ids.begin())];
  }
}

std::unique_ptr<RowRequest> make_row_request(const StepSequence& sequence, const RowSetup& setup,
                                             int64_t num_token_ids) {
  const bool has_penalties = sequence.repetition_penalty != 1 || sequence.frequency_penalty != 0 ||
                             sequence.presence_penalty != 0;
  if (!has_penalties && setup.bias_ids.empty() && setup.allowed_ids.empty() &&
      setup.stop_ids.empty()) {
    return nullptr;
  }
  auto row = std::make_unique<RowRequest>();
  const auto is_token = [&](int32_t id) { return id < num_token_ids; };
  for (size_t i = 0; i < setup.bias_ids.size(); ++i) {
    if (!is_token(setup.bias_ids[i])) continue;
    row->bias_ids.push_back(setup.bias_ids[i]);
    row->biases.push_back(setup.biases[i]);
  }
  const auto copy = [&](std::span<const int32_t> from, std::vector<int32_t>& to) {
    std::copy_if(from.begin(), from.end(), std::back_inserter(to), is_token);
  };
  copy(setup.allowed_ids, row->allowed_ids);
  copy(setup.stop_ids, row->stop_ids);
  row->has_penalties = has_penalties;
  if (!has_penalties) return row;
  for (size_t i = 0; i < setup.history_ids.size(); ++i) {
    if (!is_token(setup.history_ids[i])) continue;
    row->history_ids.push_back(setup.history_ids[i]);
    row->history_counts.push_back(setup.history_counts[i]);
  }
  return row;
}

bool make_adjustment(const StepSequence& sequence, const RowRequest* row,
                     std::span<const uint32_t> mask, LogitAdjustment& adjustment) {
  adjustment.mask = mask;
  if (row == nullptr) return !mask.empty();
  adjustment.bias_ids = row->bias_ids;
  adjustment.biases = row->biases;
  adjustment.allowed_ids = row->allowed_ids;
  if (sequence.bans_stop_ids != 0) adjustment.banned_ids = row->stop_ids;
  if (row->has_penalties) {
    adjustment.repetition_penalty = sequence.repetition_penalty;
    adjustment.frequency_penalty = sequence.frequency_penalty;
    adjustment.presence_penalty = sequence.presence_penalty;
    adjustment.history_ids = row->history_ids;
    adjustment.history_counts = row->history_counts;
  }
  return !mask.empty() || row->has_penalties || !adjustment.bias_ids.empty() ||
         !adjustment.allowed_ids.empty() || !adjustment.banned_ids.empty();
}

}  // namespace briar

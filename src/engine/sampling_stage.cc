#include "engine/sampling_stage.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/sampling/logprobs.h"

namespace briar {

int64_t sampling_stage_bytes(int64_t num_rows, int64_t vocab_size) {
  return Arena::footprint(DType::kFp32, num_rows * vocab_size) +
         3 * Arena::footprint(DType::kInt32, num_rows) +
         2 * Arena::footprint(DType::kInt32, num_rows * kMaxTopLogprobs);
}

namespace {

// The logits that tokens are drawn from: a copy if any row has an adjustment, since
// log-probabilities are of the model's own.
TensorView adjusted_logits(Stream& stream, Arena& scratch, const TensorView& logits,
                           int64_t num_token_ids, std::span<const StageRow> rows,
                           std::vector<StageResult>& results) {
  const bool has_any = std::any_of(rows.begin(), rows.end(),
                                   [](const StageRow& row) { return row.adjustment != nullptr; });
  if (!has_any) return logits;
  const TensorView out = scratch.tensor(DType::kFp32, {logits.size(0), logits.size(1)});
  std::vector<const LogitAdjustment*> adjustments;
  for (const StageRow& row : rows) adjustments.push_back(row.adjustment);
  const auto is_empty = std::make_unique<bool[]>(rows.size());
  adjust_logits(stream, {.logits = logits,
                         .vocab_size = num_token_ids,
                         .rows = adjustments.data(),
                         .out = out,
                         .is_empty = is_empty.get()});
  for (size_t i = 0; i < rows.size(); ++i) results[i].has_no_choice = is_empty[i];
  return out;
}

}  // namespace

std::vector<StageResult> run_sampling_stage(Stream& stream, Arena& scratch,
                                            const TensorView& logits, int64_t num_token_ids,
                                            std::span<const StageRow> rows) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const TensorView ids = scratch.tensor(DType::kInt32, {num_rows});
  const TensorView chosen_logprobs = scratch.tensor(DType::kFp32, {num_rows});
  const TensorView chosen = scratch.tensor(DType::kInt32, {num_rows});
  std::vector<SamplingRow> sampling;
  int32_t num_top = 0;
  bool wants_logprobs = false;
  for (const StageRow& row : rows) {
    sampling.push_back(row.sampling);
    num_top = std::max(num_top, row.samples ? row.num_top_logprobs : 0);
    wants_logprobs |= row.scored_token >= 0 || (row.samples && row.num_top_logprobs >= 0);
  }
  std::vector<StageResult> results(rows.size());
  const TensorView drawn_from =
      adjusted_logits(stream, scratch, logits, num_token_ids, rows, results);
  // Rows that are only scored are "sampled" too, greedily: it costs one pass and finds their NaNs.
  sampler(stream, {.logits = drawn_from,
                   .vocab_size = num_token_ids,
                   .rows = sampling.data(),
                   .token_ids = ids});
  TensorView top_ids, top_logprobs;
  if (wants_logprobs) {
    for (int64_t i = 0; i < num_rows; ++i) {
      const StageRow& row = rows[static_cast<size_t>(i)];
      chosen.ptr<int32_t>()[i] = row.scored_token >= 0 ? row.scored_token : ids.ptr<int32_t>()[i];
    }
    if (num_top > 0) {
      CHECK_LE(num_top, kMaxTopLogprobs, "top log-probabilities");
      top_ids = scratch.tensor(DType::kInt32, {num_rows, num_top});
      top_logprobs = scratch.tensor(DType::kFp32, {num_rows, num_top});
    }
    logprobs(stream, {.logits = logits,
                      .vocab_size = num_token_ids,
                      .chosen = chosen,
                      .chosen_logprobs = chosen_logprobs,
                      .top_ids = top_ids,
                      .top_logprobs = top_logprobs});
  }
  for (int64_t i = 0; i < num_rows; ++i) {
    const StageRow& row = rows[static_cast<size_t>(i)];
    StageResult& result = results[static_cast<size_t>(i)];
    const int32_t id = ids.ptr<int32_t>()[i];
    result.has_nan = id < 0;
    if (row.scored_token >= 0) result.scored_logprob = chosen_logprobs.ptr<float>()[i];
    if (!row.samples || result.has_nan || result.has_no_choice) continue;
    result.sampled.token_id = id;
    if (row.num_top_logprobs < 0) continue;
    result.sampled.logprob = chosen_logprobs.ptr<float>()[i];
    for (int32_t j = 0; j < row.num_top_logprobs; ++j) {
      result.sampled.top.push_back(
          {top_ids.ptr<int32_t>()[i * num_top + j], top_logprobs.ptr<float>()[i * num_top + j]});
    }
  }
  return results;
}

}  // namespace briar

// What a request asks for between the model's logits and the sampler: penalties, biases and which
// tokens may be drawn at all.
//
// Of a token that occurs in the prompt or the answer (Keskar et al., 2019):
//   logit = logit > 0 ? logit / repetition_penalty : logit * repetition_penalty
// of one that the answer has n > 0 times (OpenAI's API reference):
//   logit = logit - n * frequency_penalty - presence_penalty
// then logit_bias is added; then what may not be drawn becomes -inf. The rest keeps its bits.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct LogitAdjustment {
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  // Distinct ids of prompt and answer, and how often the answer has each of them.
  std::span<const int32_t> history_ids = {};
  std::span<const int32_t> history_counts = {};
  std::span<const int32_t> bias_ids = {};  // distinct
  std::span<const float> biases = {};
  std::span<const int32_t> allowed_ids = {};  // not empty: only these
  std::span<const int32_t> banned_ids = {};
  std::span<const uint32_t> mask = {};  // not empty: only ids whose bit is 1, id t being bit t % 32
                                        // of word t / 32
};

struct LogitAdjustmentArgs {
  TensorView logits;  // [num_rows, padded vocab] fp32; only the first vocab_size columns count
  int64_t vocab_size = 0;
  const LogitAdjustment* const* rows = nullptr;  // [num_rows]; null = the row is copied as it is
  TensorView out;                                // as logits, out; must not overlap it
  bool* is_empty =
      nullptr;  // [num_rows], out, in memory of the stream's device: nothing may be drawn
};

// All ids must lie in [0, vocab_size). `rows` and what they point to is host memory, read before
// the call returns.
void adjust_logits(Stream& stream, const LogitAdjustmentArgs& args);

}  // namespace briar

// Log-probabilities of chosen tokens and of the likeliest ones: log softmax of the logits as the
// model gives them, before temperature and filters.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct LogprobsArgs {
  TensorView logits;  // [num_rows, padded vocab] fp32; only the first vocab_size columns count
  int64_t vocab_size = 0;
  TensorView chosen;           // [num_rows] int32; an id outside [0, vocab_size) = none: NaN
  TensorView chosen_logprobs;  // [num_rows] fp32, out
  TensorView top_ids;  // [num_rows, num_top] int32, out; best first, ties to the lower id; absent =
                       // none wanted
  TensorView top_logprobs;  // [num_rows, num_top] fp32, out
};

// A row with a NaN logit gives NaN throughout and ids of -1.
void logprobs(Stream& stream, const LogprobsArgs& args);

}  // namespace briar

// Draws one token a row from the model's logits.
//
// p = softmax(logits / temperature); top-k keeps the k likeliest; top-p keeps the shortest list of
// the likeliest whose mass reaches top_p of what top-k left (Holtzman et al., 2019); min-p keeps
// tokens with at least min_p of the largest probability; the rest is renormalised and drawn from.
// Ties go to the lower id. Temperature 0 is greedy: the largest logit.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "device/tensor.h"
#include "kernels/sampling/philox.h"

namespace briar {

// One row's parameters; a plain struct, so that an array of them is a device buffer.
struct SamplingRow {
  float temperature = 0;  // 0 = greedy
  int32_t top_k = 0;      // 0 = off
  float top_p = 1;        // 1 = off
  float min_p = 0;        // 0 = off
  RandomKey random = {};
};

struct SamplerArgs {
  TensorView logits;  // [num_rows, padded vocab] fp32; only the first vocab_size columns are tokens
  int64_t vocab_size = 0;
  const SamplingRow* rows = nullptr;  // [num_rows], in memory of the stream's device
  TensorView token_ids;               // [num_rows] int32, out; -1 where the row holds a NaN
};

void sampler(Stream& stream, const SamplerArgs& args);

}  // namespace briar

// Passes over one row of logits that sampler() and logprobs() share. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace briar {

struct RowPeak {
  float max;     // largest logit
  int32_t id;    // the lowest id that has it
  bool has_nan;  // then max and id mean nothing
};

BRIAR_DECLARE_CPU_KERNEL(RowPeak row_peak(const float* logits, int64_t n))

// Sum of exp((logits[i] - max) * scale); where out is not null, out[i] gets each term.
BRIAR_DECLARE_CPU_KERNEL(double exp_row(const float* logits, int64_t n, float max, float scale,
                                        float* out))

// The `count` largest values (ties to the lower id), best first. count <= n.
BRIAR_DECLARE_CPU_KERNEL(void top_of_row(const float* values, int64_t n, int32_t count,
                                         int32_t* ids, float* best))

}  // namespace briar

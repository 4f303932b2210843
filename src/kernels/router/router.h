// Expert choice: the num_experts_per_tok largest router logits, ties to the lower expert id, and
// the softmax over just those (gpt-oss; not a softmax over all experts).
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct RouterArgs {
  TensorView logits;      // [num_tokens, num_experts] fp32
  TensorView expert_ids;  // [num_tokens, num_experts_per_tok] int32, out; best first
  TensorView weights;     // [num_tokens, num_experts_per_tok] fp32, out; sum to 1 before rounding
  bool round_to_bf16;     // routing weights rounded to bfloat16 (every precision but fp32)
};

void router(Stream& stream, const RouterArgs& args);

}  // namespace briar

// Orders the (token, choice) pairs of a MoE layer by expert, so that each expert sees its rows side
// by side.
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct MoePermuteArgs {
  TensorView expert_ids;   // [num_tokens, num_experts_per_tok] int32
  TensorView row_offsets;  // [num_experts + 1] int32, out: rows of expert e are [offsets[e],
                           // offsets[e + 1])
  TensorView row_tokens;   // [num_tokens * num_experts_per_tok] int32, out: token of each row
  TensorView row_of;  // [num_tokens, num_experts_per_tok] int32, out: row of each (token, choice)
};

// Within an expert rows keep the order of the tokens. The counts stay on the device: buffers hold
// num_tokens * num_experts_per_tok rows whatever the routing.
void moe_permute(Stream& stream, const MoePermuteArgs& args);

}  // namespace briar

// The dense feed-forward block: down(silu(gate(x)) * up(x)).
#pragma once

#include "layers/context.h"
#include "layers/linear.h"

namespace briar {

struct Mlp {
  Linear gate_up_proj;  // [2 intermediate_size, hidden_size]: gate rows, then up rows
  Linear down_proj;     // [hidden_size, intermediate_size]

  // x: [num_tokens, hidden_size] in the activation dtype; out: the same shape, fp32. Returns out.
  PartialSum forward(const ForwardContext& ctx, const TensorView& x, const TensorView& out) const;
};

}  // namespace briar

// RMSNorm at the head of a block: adds the block before it to the residual stream, then normalises.
#pragma once

#include "layers/context.h"

namespace briar {

struct RmsNorm {
  TensorView weight;  // [hidden_size]
  float eps = 0;

  // residual ([num_tokens, hidden_size] fp32, in/out) += x; returns the normalised rows in the
  // precision's activation dtype.
  TensorView forward(const ForwardContext& ctx, PartialSum x, const TensorView& residual) const;
  // The same for ctx.batch.output_rows alone, in that order.
  TensorView forward_outputs(const ForwardContext& ctx, PartialSum x,
                             const TensorView& residual) const;
};

}  // namespace briar

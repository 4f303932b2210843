#include "layers/linear.h"

#include "kernels/linear/linear.h"

namespace briar {

TensorView Linear::forward(const ForwardContext& ctx, const TensorView& x, DType out_dtype) const {
  const TensorView out = ctx.make(out_dtype, x.size(0), weight.size(0));
  forward_into(ctx.stream, x, out);
  return out;
}

void Linear::forward_into(Stream& stream, const TensorView& x, const TensorView& out) const {
  linear(stream, {.x = x, .weight = weight, .weight_scales = {}, .bias = bias, .out = out});
}

}  // namespace briar

#include "layers/mlp.h"

#include "kernels/silu_mul/silu_mul.h"

namespace briar {

PartialSum Mlp::forward(const ForwardContext& ctx, const TensorView& x,
                        const TensorView& out) const {
  // Gate and up stay fp32 up to their product, which is rounded once.
  const TensorView gate_up = gate_up_proj.forward(ctx, x, DType::kFp32);
  const TensorView hidden =
      ctx.make(ctx.precision.activations, gate_up.size(0), gate_up.size(1) / 2);
  silu_mul(ctx.stream, {.x = gate_up, .out = hidden});
  down_proj.forward_into(ctx.stream, hidden, out);
  return {out};
}

}  // namespace briar

#include "layers/norm.h"

#include "kernels/rms_norm/rms_norm.h"

namespace briar {

TensorView RmsNorm::forward(const ForwardContext& ctx, PartialSum x,
                            const TensorView& residual) const {
  const TensorView out = ctx.make(ctx.precision.activations, residual.size(0), residual.size(1));
  rms_norm(ctx.stream, {.x = x.tensor,
                        .residual = residual,
                        .weight = weight,
                        .row_index = {},
                        .out = out,
                        .eps = eps});
  return out;
}

TensorView RmsNorm::forward_outputs(const ForwardContext& ctx, PartialSum x,
                                    const TensorView& residual) const {
  const TensorView& rows = ctx.batch.output_rows;
  const TensorView out = ctx.make(ctx.precision.activations, rows.size(0), residual.size(1));
  rms_norm(ctx.stream, {.x = x.tensor,
                        .residual = residual,
                        .weight = weight,
                        .row_index = rows,
                        .out = out,
                        .eps = eps});
  return out;
}

}  // namespace briar

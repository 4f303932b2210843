#include "layers/linear.h"

#include "kernels/linear/linear.h"
#include "kernels/quantized_linear/quantized_linear.h"

namespace briar {

int64_t Linear::out_features() const {
  int64_t count = 0;
  for (const WeightRows& rows : weight) count += rows.num_rows;
  return count;
}

int64_t Linear::num_bytes() const {
  int64_t bytes = bias.num_bytes();
  for (const WeightRows& rows : weight) bytes += rows.data.num_bytes();
  return bytes;
}

TensorView Linear::forward(const ForwardContext& ctx, const TensorView& x, DType out_dtype) const {
  const TensorView out = ctx.make(out_dtype, x.size(0), out_features());
  forward_into(ctx.stream, x, out);
  return out;
}

void Linear::forward_into(Stream& stream, const TensorView& x, const TensorView& out) const {
  int64_t at = 0;
  for (const WeightRows& rows : weight) {
    const int64_t end = at + rows.num_rows;
    const TensorView part = out.columns(at, end);
    const TensorView part_bias = bias ? bias.rows(at, end) : TensorView();
    if (rows.format) {
      quantized_linear(
          stream,
          {.x = x, .weight = rows.data, .format = *rows.format, .bias = part_bias, .out = part});
    } else {
      linear(stream,
             {.x = x, .weight = rows.data, .weight_scales = {}, .bias = part_bias, .out = part});
    }
    at = end;
  }
}

}  // namespace briar

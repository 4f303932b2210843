#include "layers/embedding.h"

#include "kernels/embedding/embedding.h"
#include "kernels/quantized_linear/quantized_linear.h"

namespace briar {

TensorView Embedding::forward(const ForwardContext& ctx) const {
  const TensorView& ids = ctx.batch.token_ids;
  const TensorView out = ctx.make(DType::kFp32, ids.size(0), hidden_size);
  if (table.format) {
    quantized_embedding(ctx.stream, {.token_ids = ids,
                                     .table = table.data,
                                     .format = *table.format,
                                     .vocab_size = table.num_rows,
                                     .out = out});
  } else {
    embedding(ctx.stream, {.token_ids = ids, .table = table.data, .out = out});
  }
  return out;
}

}  // namespace briar

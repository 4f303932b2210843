#include "layers/embedding.h"

#include "kernels/embedding/embedding.h"

namespace briar {

TensorView Embedding::forward(const ForwardContext& ctx) const {
  const TensorView out = ctx.make(DType::kFp32, ctx.batch.token_ids.size(0), table.size(1));
  embedding(ctx.stream, {.token_ids = ctx.batch.token_ids, .table = table, .out = out});
  return out;
}

}  // namespace briar

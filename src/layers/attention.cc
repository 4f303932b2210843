#include "layers/attention.h"

#include "kernels/attention/attention.h"
#include "kernels/rope/rope.h"

namespace briar {

PartialSum Attention::forward(const ForwardContext& ctx, const TensorView& x) const {
  const int64_t num_tokens = x.size(0);
  const ForwardBatch::Kv& kv = ctx.batch.kv[static_cast<size_t>(kv_kind)];
  const KvLayerView& cache = ctx.kv_cache.layers[static_cast<size_t>(layer_idx)];
  // The projection stays fp32 up to the rotation, so that q, k and v are rounded once.
  const TensorView qkv = qkv_proj.forward(ctx, x, DType::kFp32);
  const TensorView q =
      ctx.workspace.tensor(ctx.precision.activations, {num_tokens, num_q_heads, head_dim});
  rope_kv_write(ctx.stream, {.qkv = qkv,
                             .cos_sin = ctx.rope_cos_sin,
                             .slots = kv.slots,
                             .q = q,
                             .k_cache = cache.k,
                             .v_cache = cache.v,
                             .q_norm = q_norm.weight,
                             .k_norm = k_norm.weight,
                             .norm_eps = q_norm.eps});
  const TensorView out =
      ctx.workspace.tensor(ctx.precision.activations, {num_tokens, num_q_heads, head_dim});
  attention(ctx.stream, {.q = q,
                         .k_cache = cache.k,
                         .v_cache = cache.v,
                         .page_table = kv.page_table,
                         .cu_seqlens_q = ctx.batch.cu_seqlens_q,
                         .seq_lens = ctx.batch.seq_lens,
                         .sinks = sinks,
                         .out = out,
                         .scale = scale,
                         .window = window});
  return {o_proj.forward(ctx, out.reshape({num_tokens, num_q_heads * head_dim}), DType::kFp32)};
}

}  // namespace briar

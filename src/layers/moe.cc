#include "layers/moe.h"

#include "kernels/moe/grouped_linear.h"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/moe_permute.h"
#include "kernels/moe/swiglu.h"
#include "kernels/router/router.h"

namespace briar {
namespace {

struct Routing {
  TensorView expert_ids;   // [num_tokens, k] int32
  TensorView weights;      // [num_tokens, k] fp32
  TensorView row_offsets;  // [num_experts + 1] int32
  TensorView row_tokens;   // [num_tokens * k] int32
  TensorView row_of;       // [num_tokens, k] int32
};

Routing route(const ForwardContext& ctx, const Moe& moe, const TensorView& x) {
  const int64_t num_tokens = x.size(0), k = moe.num_experts_per_tok;
  const TensorView logits = moe.router_proj.forward(ctx, x, DType::kFp32);
  Routing r{.expert_ids = ctx.make(DType::kInt32, num_tokens, k),
            .weights = ctx.make(DType::kFp32, num_tokens, k),
            .row_offsets = ctx.workspace.tensor(DType::kInt32, {logits.size(1) + 1}),
            .row_tokens = ctx.workspace.tensor(DType::kInt32, {num_tokens * k}),
            .row_of = ctx.make(DType::kInt32, num_tokens, k)};
  router(ctx.stream, {.logits = logits,
                      .expert_ids = r.expert_ids,
                      .weights = r.weights,
                      .round_to_bf16 = ctx.precision.rounds_routing});
  moe_permute(ctx.stream, {.expert_ids = r.expert_ids,
                           .row_offsets = r.row_offsets,
                           .row_tokens = r.row_tokens,
                           .row_of = r.row_of});
  return r;
}

// `row_index`: row of x for each row of the result; absent = the same row.
TensorView project(const ForwardContext& ctx, const ExpertProjection& experts,
                   const Routing& routing, const TensorView& x, const TensorView& row_index) {
  const TensorView out = ctx.make(DType::kFp32, routing.row_tokens.size(0), experts.weight.size(1));
  grouped_linear(ctx.stream, {.x = x,
                              .row_index = row_index,
                              .row_offsets = routing.row_offsets,
                              .weight = experts.weight,
                              .weight_scales = experts.scales,
                              .bias = experts.bias,
                              .out = out});
  return out;
}

}  // namespace

PartialSum Moe::forward(const ForwardContext& ctx, const TensorView& x,
                        const TensorView& out) const {
  // With one rank, dispatch is the permutation itself and combine the weighted sum; with several
  // they pick the rows of this rank's experts and add over ranks.
  const Routing routing = route(ctx, *this, x);
  const TensorView gate_up = project(ctx, gate_up_proj, routing, x, routing.row_tokens);
  const TensorView hidden =
      ctx.make(ctx.precision.activations, gate_up.size(0), gate_up.size(1) / 2);
  swiglu(ctx.stream, {.x = gate_up, .out = hidden, .alpha = swiglu_alpha, .limit = swiglu_limit});
  const TensorView rows = project(ctx, down_proj, routing, hidden, {});
  moe_combine(ctx.stream,
              {.rows = rows, .row_of = routing.row_of, .weights = routing.weights, .out = out});
  return {out};
}

}  // namespace briar

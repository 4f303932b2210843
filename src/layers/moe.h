// Mixture of experts with gpt-oss's clamped SwiGLU: route, dispatch, two grouped projections,
// combine.
#pragma once

#include "layers/context.h"
#include "layers/linear.h"

namespace briar {

// One projection of all experts.
struct ExpertProjection {
  TensorView weight;  // [num_experts, out_features, in_features] fp32, bf16 or MXFP4
  TensorView scales;  // [num_experts, out_features, in_features / 32] uint8; MXFP4 only
  TensorView bias;    // [num_experts, out_features]; absent = none
};

struct Moe {
  Linear router_proj;  // [num_experts, hidden_size]
  ExpertProjection
      gate_up_proj;            // out_features = 2 intermediate_size, gate and up rows interleaved
  ExpertProjection down_proj;  // in_features = intermediate_size
  int64_t num_experts_per_tok = 0;
  float swiglu_alpha = 1.702f;
  float swiglu_limit = 7.f;

  // x: [num_tokens, hidden_size] in the activation dtype; out: the same shape, fp32. Returns out.
  PartialSum forward(const ForwardContext& ctx, const TensorView& x, const TensorView& out) const;
};

}  // namespace briar

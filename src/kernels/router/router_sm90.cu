// The k largest logits of a token and their softmax: a warp a token, k passes over its logits in
// L1. Bound by latency: a few hundred bytes a token.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/order_key.cuh"
#include "kernels/router/router.h"

namespace briar::sm90 {
namespace {

struct Params {
  const float* logits;
  int32_t* expert_ids;
  float* weights;
  int64_t logits_stride, ids_stride, weights_stride;
  int num_experts, k;
  bool round_to_bf16;
};

__global__ void router_kernel(Params p) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x);
  const float* logits = p.logits + token * p.logits_stride;
  int32_t* ids = p.expert_ids + token * p.ids_stride;
  float* weights = p.weights + token * p.weights_stride;
  uint64_t previous = ~uint64_t{0};
  float largest = 0.f, sum = 0.f;
  for (int c = 0; c < p.k; ++c) {
    uint64_t best = 0;
    for (int e = lane; e < p.num_experts; e += kWarp) {
      const uint64_t key = order_key(logits[e], static_cast<uint32_t>(e));
      if (key < previous && key > best) best = key;
    }
    best = warp_max(best);
    previous = best;
    const auto id = static_cast<int32_t>(id_of_key(best));
    const float logit = logits[id];
    if (c == 0) largest = logit;
    const float weight = expf(logit - largest);
    sum += weight;
    if (lane == 0) {
      ids[c] = id;
      weights[c] = weight;
    }
  }
  __syncwarp();
  for (int c = lane; c < p.k; c += kWarp) {
    const float weight = weights[c] / sum;
    weights[c] = p.round_to_bf16 ? as_float(__float2bfloat16_rn(weight)) : weight;
  }
}

}  // namespace

void router(Stream& stream, const RouterArgs& a) {
  launch(stream, "router", router_kernel,
         {.grid = dim3(static_cast<unsigned>(a.logits.size(0))), .block = dim3(kWarp)},
         Params{a.logits.ptr<float>(), a.expert_ids.ptr<int32_t>(), a.weights.ptr<float>(),
                a.logits.stride(0), a.expert_ids.stride(0), a.weights.stride(0),
                static_cast<int>(a.logits.size(1)), static_cast<int>(a.weights.size(1)),
                a.round_to_bf16});
}

}  // namespace briar::sm90

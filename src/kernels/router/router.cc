// A few dozen values a token: plain code is enough on the CPU.
#include "kernels/router/router.h"

#include <cmath>

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void router(Stream& stream, const RouterArgs& args))
namespace {

// The order of choice. A NaN comes first, so that it is chosen and makes all weights NaN instead of
// vanishing.
bool better(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// Insertion into a short sorted list; equals keep the lower id first.
void choose(const float* logits, int64_t num_experts, int32_t* ids, float* chosen, int64_t k) {
  int64_t count = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    if (count == k && !better(logits[e], chosen[k - 1])) continue;
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && better(logits[e], chosen[at - 1]); --at) {
      chosen[at] = chosen[at - 1];
      ids[at] = ids[at - 1];
    }
    chosen[at] = logits[e];
    ids[at] = static_cast<int32_t>(e);
  }
}

void softmax(float* values, int64_t k, bool round_to_bf16) {
  const float max = values[0];
  float sum = 0.f;
  for (int64_t i = 0; i < k; ++i) sum += values[i] = std::exp(values[i] - max);
  for (int64_t i = 0; i < k; ++i) {
    values[i] /= sum;
    if (round_to_bf16) values[i] = to_float(to_bf16(values[i]));
  }
}

}  // namespace

void router(Stream& stream, const RouterArgs& a) {
  ShapeCheck s("router");
  s("logits", a.logits, {DType::kFp32}, {"num_tokens", "num_experts"});
  s("expert_ids", a.expert_ids, {DType::kInt32}, {"num_tokens", "num_experts_per_tok"});
  s("weights", a.weights, {DType::kFp32}, {"num_tokens", "num_experts_per_tok"});
  const int64_t num_experts = s["num_experts"], k = s["num_experts_per_tok"];
  CHECK(k >= 1 && k <= num_experts, "num_experts_per_tok={} of num_experts={}", k, num_experts);
  BRIAR_RETURN_IF_CUDA(router, stream, a);
  cpu_thread_pool(stream).for_ranges(s["num_tokens"], 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* logits = a.logits.ptr<float>() + i * a.logits.stride(0);
      float* weights = a.weights.ptr<float>() + i * a.weights.stride(0);
      choose(logits, num_experts, a.expert_ids.ptr<int32_t>() + i * a.expert_ids.stride(0), weights,
             k);
      softmax(weights, k, a.round_to_bf16);
    }
  });
}

}  // namespace briar

#include "kernels/moe/moe_permute.h"

#include <algorithm>
#include <utility>

#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void moe_permute(Stream& stream, const MoePermuteArgs& args))

void moe_permute(Stream& stream, const MoePermuteArgs& a) {
  ShapeCheck s("moe_permute");
  s("expert_ids", a.expert_ids, {DType::kInt32}, {"num_tokens", "num_experts_per_tok"});
  s("row_of", a.row_of, {DType::kInt32}, {"num_tokens", "num_experts_per_tok"});
  const int64_t num_rows = s["num_tokens"] * s["num_experts_per_tok"];
  s("row_tokens", a.row_tokens, {DType::kInt32}, {num_rows});
  s("row_offsets", a.row_offsets, {DType::kInt32}, {"num_experts + 1"});
  CHECK(a.expert_ids.is_contiguous() && a.row_of.is_contiguous(),
        "moe_permute: contiguous tensors");
  BRIAR_RETURN_IF_CUDA(moe_permute, stream, a);
  const int64_t num_experts = s["num_experts + 1"] - 1, k = s["num_experts_per_tok"];
  const auto* ids = a.expert_ids.ptr<int32_t>();
  auto* offsets = a.row_offsets.ptr<int32_t>();
  auto* row_of = a.row_of.ptr<int32_t>();
  auto* row_tokens = a.row_tokens.ptr<int32_t>();

  // Counting sort. offsets[e + 1] counts, then holds the begin of e, and after placing the end of
  // e.
  std::fill(offsets, offsets + num_experts + 1, 0);
  for (int64_t i = 0; i < num_rows; ++i) {
    CHECK(ids[i] >= 0 && ids[i] < num_experts, "expert_ids[{}] = {} of {} experts", i, ids[i],
          num_experts);
    ++offsets[ids[i] + 1];
  }
  int32_t begin = 0;
  for (int64_t e = 0; e < num_experts; ++e) begin += std::exchange(offsets[e + 1], begin);
  for (int64_t i = 0; i < num_rows; ++i) {
    const int32_t row = offsets[ids[i] + 1]++;
    row_of[i] = row;
    row_tokens[row] = static_cast<int32_t>(i / k);
  }
}

}  // namespace briar

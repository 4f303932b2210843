#include "kernels/moe/grouped_linear.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/linear/linear_cpu.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void grouped_linear(Stream& stream, const GroupedLinearArgs& args))

void grouped_linear(Stream& stream, const GroupedLinearArgs& a) {
  ShapeCheck s("grouped_linear");
  s("x", a.x, {DType::kFp32, DType::kBf16}, {"num_x_rows", "in_features"});
  s("weight", a.weight, {DType::kFp32, DType::kBf16, DType::kMxfp4},
    {"num_experts", "out_features", "in_features"});
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_rows", "out_features"});
  s("row_offsets", a.row_offsets, {DType::kInt32}, {s["num_experts"] + 1});
  if (a.bias) s("bias", a.bias, {DType::kFp32, DType::kBf16}, {"num_experts", "out_features"});
  if (a.row_index) s("row_index", a.row_index, {DType::kInt32}, {"num_rows"});
  if (a.weight.dtype() == DType::kMxfp4) {
    CHECK_EQ(s["in_features"] % 32, 0, "MXFP4 weights come in blocks of 32");
    s("weight_scales", a.weight_scales, {DType::kUint8},
      {"num_experts", "out_features", s["in_features"] / 32});
  }
  CHECK(a.weight.is_contiguous(), "weight {}", a.weight.describe());
  BRIAR_RETURN_IF_CUDA(grouped_linear, stream, a);
  const auto* offsets = a.row_offsets.ptr<int32_t>();
  CHECK_EQ(static_cast<int64_t>(offsets[s["num_experts"]]), s["num_rows"], "rows of all experts");
  const GroupedProduct product{
      .x = a.x,
      .weight = a.weight,
      .scales = a.weight_scales,
      .bias = a.bias,
      .out = a.out,
      .row_offsets = offsets,
      .gather = a.row_index ? a.row_index.ptr<int32_t>() : nullptr,
  };
  BRIAR_CALL_CPU_KERNEL(grouped_product, cpu_thread_pool(stream), product);
}

}  // namespace briar

#include "kernels/linear/linear.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/linear/linear_cpu.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void linear(Stream& stream, const LinearArgs& args))

void linear(Stream& stream, const LinearArgs& a) {
  ShapeCheck s("linear");
  s("x", a.x, {DType::kFp32, DType::kBf16}, {"num_tokens", "in_features"});
  s("weight", a.weight, {DType::kFp32, DType::kBf16, DType::kMxfp4},
    {"out_features", "in_features"});
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_tokens", "out_features"});
  if (a.bias) s("bias", a.bias, {DType::kFp32, DType::kBf16}, {"out_features"});
  const int64_t n = s["out_features"], k = s["in_features"];
  if (a.weight.dtype() == DType::kMxfp4) {
    CHECK_EQ(k % 32, 0, "MXFP4 weights come in blocks of 32");
    s("weight_scales", a.weight_scales, {DType::kUint8}, {"out_features", k / 32});
  }
  BRIAR_RETURN_IF_CUDA(linear, stream, a);
  GroupedProduct product{
      .x = a.x, .weight = a.weight.reshape({1, n, k}), .scales = {}, .bias = {}, .out = a.out};
  if (a.weight_scales) {
    product.scales = a.weight_scales.reshape({1, n, k / 32});
  }
  if (a.bias) product.bias = a.bias.reshape({1, n});
  const int32_t row_offsets[2] = {0, static_cast<int32_t>(s["num_tokens"])};
  product.row_offsets = row_offsets;
  BRIAR_CALL_CPU_KERNEL(grouped_product, cpu_thread_pool(stream), product);
}

}  // namespace briar

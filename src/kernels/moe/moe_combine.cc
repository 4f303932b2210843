#include "kernels/moe/moe_combine.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void moe_combine(ThreadPool& pool, const MoeCombineArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void moe_combine(Stream& stream, const MoeCombineArgs& args))

void moe_combine(Stream& stream, const MoeCombineArgs& a) {
  ShapeCheck s("moe_combine");
  s("row_of", a.row_of, {DType::kInt32}, {"num_tokens", "num_experts_per_tok"});
  s("weights", a.weights, {DType::kFp32}, {"num_tokens", "num_experts_per_tok"});
  s("rows", a.rows, {DType::kFp32}, {s["num_tokens"] * s["num_experts_per_tok"], "hidden_size"});
  s("out", a.out, {DType::kFp32}, {"num_tokens", "hidden_size"});
  BRIAR_RETURN_IF_CUDA(moe_combine, stream, a);
  BRIAR_CALL_CPU_KERNEL(moe_combine, cpu_thread_pool(stream), a);
}

}  // namespace briar

#include "kernels/silu_mul/silu_mul.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void silu_mul(ThreadPool& pool, const SiluMulArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void silu_mul(Stream& stream, const SiluMulArgs& args))

void silu_mul(Stream& stream, const SiluMulArgs& a) {
  ShapeCheck s("silu_mul");
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_rows", "intermediate_size"});
  s("x", a.x, {DType::kFp32}, {"num_rows", 2 * s["intermediate_size"]});
  BRIAR_RETURN_IF_CUDA(silu_mul, stream, a);
  BRIAR_CALL_CPU_KERNEL(silu_mul, cpu_thread_pool(stream), a);
}

}  // namespace briar

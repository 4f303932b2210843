#include "kernels/moe/swiglu.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void swiglu(ThreadPool& pool, const SwigluArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void swiglu(Stream& stream, const SwigluArgs& args))

void swiglu(Stream& stream, const SwigluArgs& a) {
  ShapeCheck s("swiglu");
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_rows", "intermediate_size"});
  s("x", a.x, {DType::kFp32}, {"num_rows", 2 * s["intermediate_size"]});
  BRIAR_RETURN_IF_CUDA(swiglu, stream, a);
  BRIAR_CALL_CPU_KERNEL(swiglu, cpu_thread_pool(stream), a);
}

}  // namespace briar

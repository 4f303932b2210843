#include "kernels/rms_norm/rms_norm.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void rms_norm(ThreadPool& pool, const RmsNormArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void rms_norm(Stream& stream, const RmsNormArgs& args))

void rms_norm(Stream& stream, const RmsNormArgs& a) {
  ShapeCheck s("rms_norm");
  s("residual", a.residual, {DType::kFp32}, {"num_tokens", "hidden_size"});
  if (a.x) s("x", a.x, {DType::kFp32}, {"num_tokens", "hidden_size"});
  s("weight", a.weight, {DType::kFp32, DType::kBf16}, {"hidden_size"});
  if (!a.row_index) {
    s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_tokens", "hidden_size"});
  } else {
    s("row_index", a.row_index, {DType::kInt32}, {"num_outputs"});
    s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_outputs", "hidden_size"});
  }
  BRIAR_RETURN_IF_CUDA(rms_norm, stream, a);
  if (a.row_index) {
    for (int64_t i = 0; i < s["num_outputs"]; ++i) {
      const int32_t row = a.row_index.ptr<int32_t>()[i];
      CHECK(row >= 0 && row < s["num_tokens"], "row_index[{}] = {} of {} tokens", i, row,
            s["num_tokens"]);
    }
  }
  BRIAR_CALL_CPU_KERNEL(rms_norm, cpu_thread_pool(stream), a);
}

}  // namespace briar

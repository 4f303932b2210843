#include "kernels/embedding/embedding.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void embedding(ThreadPool& pool, const EmbeddingArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void embedding(Stream& stream, const EmbeddingArgs& args))

void embedding(Stream& stream, const EmbeddingArgs& a) {
  ShapeCheck s("embedding");
  s("token_ids", a.token_ids, {DType::kInt32}, {"num_tokens"});
  s("table", a.table, {DType::kFp32, DType::kBf16}, {"vocab_size", "hidden_size"});
  s("out", a.out, {DType::kFp32}, {"num_tokens", "hidden_size"});
  BRIAR_RETURN_IF_CUDA(embedding, stream, a);
  const auto* ids = a.token_ids.ptr<int32_t>();
  for (int64_t i = 0; i < s["num_tokens"]; ++i) {
    CHECK(ids[i] >= 0 && ids[i] < s["vocab_size"],
          "embedding: token_ids[{}] = {} of a vocabulary of {}", i, ids[i], s["vocab_size"]);
  }
  BRIAR_CALL_CPU_KERNEL(embedding, cpu_thread_pool(stream), a);
}

}  // namespace briar

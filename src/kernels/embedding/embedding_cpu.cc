#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/embedding/embedding.h"

namespace briar::BRIAR_ISA {
namespace {

template <class T>
void copy_rows(ThreadPool& pool, const EmbeddingArgs& a) {
  const auto* ids = static_cast<const int32_t*>(a.token_ids.data());
  const auto* table = static_cast<const T*>(a.table.data());
  auto* out = static_cast<float*>(a.out.data());
  const int64_t hidden_size = a.out.size(1);
  pool.for_ranges(a.out.size(0), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = table + ids[i] * a.table.stride(0);
      float* to = out + i * a.out.stride(0);
      for_lanes(
          hidden_size, [&](int64_t at) { Vec::load(from + at).store(to + at); },
          [&](int64_t at, int n) { Vec::load_first(from + at, n).store_first(to + at, n); });
    }
  });
}

}  // namespace

void embedding(ThreadPool& pool, const EmbeddingArgs& a) {
  if (a.table.dtype() == DType::kBf16) {
    copy_rows<Bf16>(pool, a);
  } else {
    copy_rows<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA

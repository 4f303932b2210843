#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/moe/moe_combine.h"

namespace briar::BRIAR_ISA {

void moe_combine(ThreadPool& pool, const MoeCombineArgs& a) {
  const int64_t k = a.row_of.size(1), hidden_size = a.out.size(1);
  const auto* rows = static_cast<const float*>(a.rows.data());
  pool.for_ranges(a.out.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const auto* row_of = static_cast<const int32_t*>(a.row_of.data()) + t * a.row_of.stride(0);
      const auto* weights = static_cast<const float*>(a.weights.data()) + t * a.weights.stride(0);
      float* out = static_cast<float*>(a.out.data()) + t * a.out.stride(0);
      auto from = [&](int64_t c) { return rows + row_of[c] * a.rows.stride(0); };
      for_lanes(
          hidden_size,
          [&](int64_t at) {
            Vec sum = Vec::zero();
            for (int64_t c = 0; c < k; ++c) {
              sum = fma(Vec::all(weights[c]), Vec::load(from(c) + at), sum);
            }
            sum.store(out + at);
          },
          [&](int64_t at, int n) {
            Vec sum = Vec::zero();
            for (int64_t c = 0; c < k; ++c) {
              sum = fma(Vec::all(weights[c]), Vec::load_first(from(c) + at, n), sum);
            }
            sum.store_first(out + at, n);
          });
    }
  });
}

}  // namespace briar::BRIAR_ISA

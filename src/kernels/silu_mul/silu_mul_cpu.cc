// One pass, bound by reading x; the exponential is a polynomial over whole registers (vec.h).
#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/silu_mul/silu_mul.h"

namespace briar::BRIAR_ISA {
namespace {

BRIAR_INLINE Vec activate(Vec gate, Vec up) {
  const Vec one = Vec::all(1.f);
  return gate / (one + exp(Vec::zero() - gate)) * up;
}

template <class O>
void run(ThreadPool& pool, const SiluMulArgs& a) {
  const int64_t n = a.out.size(1);
  const auto* x = static_cast<const float*>(a.x.data());
  auto* out = static_cast<O*>(a.out.data());
  pool.for_ranges(a.out.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* gates = x + row * a.x.stride(0);
      const float* ups = gates + n;
      O* to = out + row * a.out.stride(0);
      for_lanes(
          n,
          [&](int64_t at) { activate(Vec::load(gates + at), Vec::load(ups + at)).store(to + at); },
          [&](int64_t at, int count) {
            activate(Vec::load_first(gates + at, count), Vec::load_first(ups + at, count))
                .store_first(to + at, count);
          });
    }
  });
}

}  // namespace

void silu_mul(ThreadPool& pool, const SiluMulArgs& a) {
  if (a.out.dtype() == DType::kBf16) {
    run<Bf16>(pool, a);
  } else {
    run<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA

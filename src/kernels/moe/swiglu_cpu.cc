#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/moe/swiglu.h"

namespace briar::BRIAR_ISA {
namespace {

// One register of gates and ups. The caller splits the interleaved pairs through small arrays: a
// shuffle would need a form per instruction set, for an op that is a hundredth of a step.
BRIAR_INLINE Vec activate(Vec gate, Vec up, Vec alpha, Vec limit) {
  // The value is the second operand: a NaN passes through min and max instead of turning into the
  // limit.
  gate = limit.min(gate);
  up = (Vec::zero() - limit).max(limit.min(up));
  const Vec one = Vec::all(1.f);
  const Vec sigmoid = one / (one + exp(Vec::zero() - alpha * gate));
  return gate * sigmoid * (up + one);
}

template <class O>
void run(ThreadPool& pool, const SwigluArgs& a) {
  const int64_t n = a.out.size(1);
  const auto* x = static_cast<const float*>(a.x.data());
  auto* out = static_cast<O*>(a.out.data());
  const Vec alpha = Vec::all(a.alpha), limit = Vec::all(a.limit);
  pool.for_ranges(a.out.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * a.x.stride(0);
      O* to = out + row * a.out.stride(0);
      auto lanes = [&](int64_t at, int count) {
        alignas(64) float gates[Vec::kLanes] = {}, ups[Vec::kLanes] = {};
        for (int i = 0; i < count; ++i) {
          gates[i] = from[2 * (at + i)];
          ups[i] = from[2 * (at + i) + 1];
        }
        return activate(Vec::load(gates), Vec::load(ups), alpha, limit);
      };
      for_lanes(
          n, [&](int64_t at) { lanes(at, Vec::kLanes).store(to + at); },
          [&](int64_t at, int count) { lanes(at, count).store_first(to + at, count); });
    }
  });
}

}  // namespace

void swiglu(ThreadPool& pool, const SwigluArgs& a) {
  if (a.out.dtype() == DType::kBf16) {
    run<Bf16>(pool, a);
  } else {
    run<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA

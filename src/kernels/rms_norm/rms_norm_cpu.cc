// Two passes over a row that stays in the L1 cache; bound by memory traffic of residual and out.
#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/rms_norm/rms_norm.h"

namespace briar::BRIAR_ISA {
namespace {

// residual += x (if there is one); returns the sum of squares.
BRIAR_INLINE float add_and_square(float* residual, const float* x, int64_t n) {
  Vec squares = Vec::zero();
  for_lanes(
      n,
      [&](int64_t at) {
        Vec r = Vec::load(residual + at);
        if (x != nullptr) {
          r = r + Vec::load(x + at);
          r.store(residual + at);
        }
        squares = fma(r, r, squares);
      },
      [&](int64_t at, int lanes) {
        Vec r = Vec::load_first(residual + at, lanes);
        if (x != nullptr) {
          r = r + Vec::load_first(x + at, lanes);
          r.store_first(residual + at, lanes);
        }
        squares = fma(r, r, squares);
      });
  return squares.sum();
}

template <class W, class O>
BRIAR_INLINE void scale_row(const float* residual, const W* weight, O* out, float inv_rms,
                            int64_t n) {
  const Vec factor = Vec::all(inv_rms);
  for_lanes(
      n,
      [&](int64_t at) {
        (Vec::load(residual + at) * factor * Vec::load(weight + at)).store(out + at);
      },
      [&](int64_t at, int lanes) {
        (Vec::load_first(residual + at, lanes) * factor * Vec::load_first(weight + at, lanes))
            .store_first(out + at, lanes);
      });
}

template <class W, class O>
void run(ThreadPool& pool, const RmsNormArgs& a) {
  const int64_t hidden_size = a.residual.size(1);
  auto* residual = static_cast<float*>(a.residual.data());
  const auto* x = a.x ? static_cast<const float*>(a.x.data()) : nullptr;
  const auto* weight = static_cast<const W*>(a.weight.data());
  auto* out = static_cast<O*>(a.out.data());
  const auto* index = a.row_index ? static_cast<const int32_t*>(a.row_index.data()) : nullptr;
  pool.for_ranges(a.out.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t token = index != nullptr ? index[i] : i;
      float* row = residual + token * a.residual.stride(0);
      const float sum =
          add_and_square(row, x == nullptr ? nullptr : x + token * a.x.stride(0), hidden_size);
      const float mean = sum / static_cast<float>(hidden_size);
      const float inv_rms = 1.f / __builtin_sqrtf(mean + a.eps);
      scale_row(row, weight, out + i * a.out.stride(0), inv_rms, hidden_size);
    }
  });
}

template <class W>
void run_out(ThreadPool& pool, const RmsNormArgs& a) {
  if (a.out.dtype() == DType::kBf16) {
    run<W, Bf16>(pool, a);
  } else {
    run<W, float>(pool, a);
  }
}

}  // namespace

void rms_norm(ThreadPool& pool, const RmsNormArgs& a) {
  if (a.weight.dtype() == DType::kBf16) {
    run_out<Bf16>(pool, a);
  } else {
    run_out<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA

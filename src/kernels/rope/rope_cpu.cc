#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"
#include "kernels/rope/rope.h"

namespace briar::BRIAR_ISA {
namespace {

// out = (x1 cos - x2 sin, x2 cos + x1 sin) for the two halves of one head.
template <class O>
BRIAR_INLINE void rotate_head(const float* x, const float* cos_sin, O* out, int64_t half) {
  const float* cosines = cos_sin;
  const float* sines = cos_sin + half;
  for_lanes(
      half,
      [&](int64_t i) {
        const Vec c = Vec::load(cosines + i), s = Vec::load(sines + i);
        const Vec x1 = Vec::load(x + i), x2 = Vec::load(x + half + i);
        (x1 * c - x2 * s).store(out + i);
        (x2 * c + x1 * s).store(out + half + i);
      },
      [&](int64_t i, int n) {
        const Vec c = Vec::load_first(cosines + i, n), s = Vec::load_first(sines + i, n);
        const Vec x1 = Vec::load_first(x + i, n), x2 = Vec::load_first(x + half + i, n);
        (x1 * c - x2 * s).store_first(out + i, n);
        (x2 * c + x1 * s).store_first(out + half + i, n);
      });
}

// out = x / sqrt(mean(x^2) + eps) * weight, in the order of sums of kernels/rms_norm.
template <class W>
BRIAR_INLINE void norm_head(const float* x, const W* weight, float eps, float* out, int64_t n) {
  Vec squares = Vec::zero();
  for_lanes(
      n,
      [&](int64_t i) {
        const Vec v = Vec::load(x + i);
        squares = fma(v, v, squares);
      },
      [&](int64_t i, int lanes) {
        const Vec v = Vec::load_first(x + i, lanes);
        squares = fma(v, v, squares);
      });
  const Vec factor = Vec::all(1.f / __builtin_sqrtf(squares.sum() / static_cast<float>(n) + eps));
  for_lanes(
      n, [&](int64_t i) { (Vec::load(x + i) * factor * Vec::load(weight + i)).store(out + i); },
      [&](int64_t i, int lanes) {
        (Vec::load_first(x + i, lanes) * factor * Vec::load_first(weight + i, lanes))
            .store_first(out + i, lanes);
      });
}

// `x`, or where there are weights, its normalised form in `scratch`.
BRIAR_INLINE const float* normed(const float* x, const TensorView& weight, float eps,
                                 float* scratch, int64_t n) {
  if (!weight) return x;
  if (weight.dtype() == DType::kBf16) {
    norm_head(x, static_cast<const Bf16*>(weight.data()), eps, scratch, n);
  } else {
    norm_head(x, static_cast<const float*>(weight.data()), eps, scratch, n);
  }
  return scratch;
}

template <class O>
BRIAR_INLINE void copy_head(const float* x, O* out, int64_t head_dim) {
  for_lanes(
      head_dim, [&](int64_t i) { Vec::load(x + i).store(out + i); },
      [&](int64_t i, int n) { Vec::load_first(x + i, n).store_first(out + i, n); });
}

template <class Q, class Kv>
void run(ThreadPool& pool, const RopeKvWriteArgs& a) {
  const int64_t num_q_heads = a.q.size(1), num_kv_heads = a.k_cache.size(2), head_dim = a.q.size(2);
  const auto* qkv = static_cast<const float*>(a.qkv.data());
  const auto* cos_sin = static_cast<const float*>(a.cos_sin.data());
  const auto* slots = static_cast<const int32_t*>(a.slots.data());
  auto* q = static_cast<Q*>(a.q.data());
  auto* k_cache = static_cast<Kv*>(a.k_cache.data());
  auto* v_cache = static_cast<Kv*>(a.v_cache.data());
  pool.for_ranges(a.q.size(0), 8, [&](int64_t begin, int64_t end) {
    alignas(64) float scratch[kMaxNormedHeadDim];
    for (int64_t i = begin; i < end; ++i) {
      const float* row = qkv + i * a.qkv.stride(0);
      const float* angles = cos_sin + i * a.cos_sin.stride(0);
      for (int64_t h = 0; h < num_q_heads; ++h, row += head_dim) {
        const float* x = normed(row, a.q_norm, a.norm_eps, scratch, head_dim);
        rotate_head(x, angles, q + i * a.q.stride(0) + h * a.q.stride(1), head_dim / 2);
      }
      const int64_t slot = static_cast<int64_t>(slots[i]) * num_kv_heads * head_dim;
      for (int64_t h = 0; h < num_kv_heads; ++h, row += head_dim) {
        const float* x = normed(row, a.k_norm, a.norm_eps, scratch, head_dim);
        rotate_head(x, angles, k_cache + slot + h * head_dim, head_dim / 2);
      }
      for (int64_t h = 0; h < num_kv_heads; ++h, row += head_dim) {
        copy_head(row, v_cache + slot + h * head_dim, head_dim);
      }
    }
  });
}

template <class Q>
void run_kv(ThreadPool& pool, const RopeKvWriteArgs& a) {
  if (a.k_cache.dtype() == DType::kBf16) {
    run<Q, Bf16>(pool, a);
  } else {
    run<Q, float>(pool, a);
  }
}

}  // namespace

void rope_kv_write(ThreadPool& pool, const RopeKvWriteArgs& a) {
  if (a.q.dtype() == DType::kBf16) {
    run_kv<Bf16>(pool, a);
  } else {
    run_kv<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA

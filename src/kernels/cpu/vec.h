// One register of fp32 lanes, for files that are compiled once per instruction set (isa.h). Only
// what the kernels need. Everything is inside the namespace of the set and always inlined, so that
// no code compiled for AVX-512 can be linked into the AVX2 path.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "device/dtype.h"

#if !defined(BRIAR_ISA)
#error "vec.h is for the kernels that cmake's briar_cpu_kernel() compiles per instruction set"
#endif

#define BRIAR_INLINE [[gnu::always_inline]] inline

namespace briar::BRIAR_ISA {

#if defined(__AVX512F__)

struct Vec {
  static constexpr int kLanes = 16;
  __m512 v;

  BRIAR_INLINE static Vec zero() { return {_mm512_setzero_ps()}; }
  BRIAR_INLINE static Vec all(float x) { return {_mm512_set1_ps(x)}; }
  BRIAR_INLINE static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  BRIAR_INLINE static Vec load(const Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  // The first n lanes (0 < n < kLanes) from memory, zeros in the others; reads nothing beyond.
  BRIAR_INLINE static Vec load_first(const float* p, int n) {
    return {_mm512_maskz_loadu_ps(mask(n), p)};
  }
  BRIAR_INLINE static Vec load_first(const Bf16* p, int n) {
    const __m256i bits = _mm256_maskz_loadu_epi16(mask(n), p);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  BRIAR_INLINE void store(float* p) const { _mm512_storeu_ps(p, v); }
  BRIAR_INLINE void store(Bf16* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), round_to_bf16());
  }
  BRIAR_INLINE void store_first(float* p, int n) const { _mm512_mask_storeu_ps(p, mask(n), v); }
  BRIAR_INLINE void store_first(Bf16* p, int n) const {
    _mm256_mask_storeu_epi16(p, mask(n), round_to_bf16());
  }

  BRIAR_INLINE Vec operator+(Vec o) const { return {_mm512_add_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator-(Vec o) const { return {_mm512_sub_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator*(Vec o) const { return {_mm512_mul_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator/(Vec o) const { return {_mm512_div_ps(v, o.v)}; }
  // In min and max the second operand wins where one is NaN, as in the instruction.
  BRIAR_INLINE Vec min(Vec o) const { return {_mm512_min_ps(v, o.v)}; }
  BRIAR_INLINE Vec max(Vec o) const { return {_mm512_max_ps(v, o.v)}; }
  BRIAR_INLINE Vec round() const {
    return {_mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  // this * 2^n for whole n in [-126, 127].
  BRIAR_INLINE Vec scale_by_power_of_two(Vec n) const { return {_mm512_scalef_ps(v, n.v)}; }

  BRIAR_INLINE float sum() const { return half_sum(v).sum128(); }
  BRIAR_INLINE float max_lane() const { return _mm512_reduce_max_ps(v); }

  static constexpr __mmask16 mask(int n) { return static_cast<__mmask16>((1u << n) - 1u); }

  struct Half {
    __m128 v;
    BRIAR_INLINE float sum128() const {
      const __m128 pair = _mm_add_ps(v, _mm_movehl_ps(v, v));
      return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
    }
  };
  // Lanes i, i + 4, i + 8 and i + 12 summed: 16 lanes to 4.
  BRIAR_INLINE static Half half_sum(__m512 x) {
    const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    return {_mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1))};
  }
  BRIAR_INLINE __m128 quarter() const { return half_sum(v).v; }

 private:
  BRIAR_INLINE __m256i round_to_bf16() const {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_srli_epi32(_mm512_mask_blend_epi32(is_nan, rounded, quiet), 16));
  }
};

#else  // AVX2 and FMA

struct Vec {
  static constexpr int kLanes = 8;
  __m256 v;

  BRIAR_INLINE static Vec zero() { return {_mm256_setzero_ps()}; }
  BRIAR_INLINE static Vec all(float x) { return {_mm256_set1_ps(x)}; }
  BRIAR_INLINE static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  BRIAR_INLINE static Vec load(const Bf16* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // The first n lanes (0 < n < kLanes) from memory, zeros in the others; reads nothing beyond.
  BRIAR_INLINE static Vec load_first(const float* p, int n) {
    return {_mm256_maskload_ps(p, mask(n))};
  }
  BRIAR_INLINE static Vec load_first(const Bf16* p, int n) {
    alignas(16) uint16_t lanes[kLanes] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i].bits;
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(lanes)));
  }
  BRIAR_INLINE void store(float* p) const { _mm256_storeu_ps(p, v); }
  BRIAR_INLINE void store(Bf16* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), round_to_bf16());
  }
  BRIAR_INLINE void store_first(float* p, int n) const { _mm256_maskstore_ps(p, mask(n), v); }
  BRIAR_INLINE void store_first(Bf16* p, int n) const {
    alignas(16) uint16_t lanes[kLanes];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), round_to_bf16());
    for (int i = 0; i < n; ++i) p[i].bits = lanes[i];
  }

  BRIAR_INLINE Vec operator+(Vec o) const { return {_mm256_add_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator-(Vec o) const { return {_mm256_sub_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator*(Vec o) const { return {_mm256_mul_ps(v, o.v)}; }
  BRIAR_INLINE Vec operator/(Vec o) const { return {_mm256_div_ps(v, o.v)}; }
  // In min and max the second operand wins where one is NaN, as in the instruction.
  BRIAR_INLINE Vec min(Vec o) const { return {_mm256_min_ps(v, o.v)}; }
  BRIAR_INLINE Vec max(Vec o) const { return {_mm256_max_ps(v, o.v)}; }
  BRIAR_INLINE Vec round() const {
    return {_mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  // this * 2^n for whole n in [-126, 127].
  BRIAR_INLINE Vec scale_by_power_of_two(Vec n) const {
    const __m256i exponent =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23);
    return {_mm256_mul_ps(v, _mm256_castsi256_ps(exponent))};
  }

  BRIAR_INLINE float sum() const { return sum128(quarter()); }
  BRIAR_INLINE float max_lane() const {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }
  // Lanes i and i + 4 summed: 8 lanes to 4.
  BRIAR_INLINE __m128 quarter() const {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  }

  BRIAR_INLINE static Vec widen(__m128i bits) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
  }
  BRIAR_INLINE static __m256i mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  BRIAR_INLINE static float sum128(__m128 x) {
    const __m128 pair = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }

 private:
  BRIAR_INLINE __m128i round_to_bf16() const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i words = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }
};

#endif

// a * b + c, rounded once.
BRIAR_INLINE Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
#else
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
#endif
}

// Four sums at once. Each result is the same sequence of additions as Vec::sum() would give, so a
// dot product has the same bits whichever of the two forms computed it.
BRIAR_INLINE __m128 sum4(Vec a, Vec b, Vec c, Vec d) {
  const __m128 qa = a.quarter(), qb = b.quarter(), qc = c.quarter(), qd = d.quarter();
  // sum() adds lanes as (0 + 2) + (1 + 3).
  const __m128 ab_lo = _mm_movelh_ps(qa, qb), ab_hi = _mm_movehl_ps(qb, qa);
  const __m128 cd_lo = _mm_movelh_ps(qc, qd), cd_hi = _mm_movehl_ps(qd, qc);
  const __m128 ab = _mm_add_ps(ab_lo, ab_hi);  // a0+a2, a1+a3, b0+b2, b1+b3
  const __m128 cd = _mm_add_ps(cd_lo, cd_hi);
  return _mm_add_ps(_mm_shuffle_ps(ab, cd, _MM_SHUFFLE(2, 0, 2, 0)),
                    _mm_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 1, 3, 1)));
}

// x where a >= b, else 0.
BRIAR_INLINE Vec keep_where_ge(Vec a, Vec b, Vec x) {
#if defined(__AVX512F__)
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ), x.v)};
#else
  return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ), x.v)};
#endif
}

// x, but 0 in the lanes where a < b; a NaN in a or b is not less.
BRIAR_INLINE Vec zero_where_lt(Vec a, Vec b, Vec x) {
#if defined(__AVX512F__)
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ), x.v)};
#else
  return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_NLT_UQ), x.v)};
#endif
}

// True if any lane of a is >= the same lane of b.
BRIAR_INLINE bool any_ge(Vec a, Vec b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ) != 0;
#else
  return _mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)) != 0;
#endif
}

// e^x to within 2 units in the last place for x in [-87.3, 88]; 0 below (also for -inf), e^88
// above, NaN for NaN (min and max hand on their second operand). Range reduction x = n ln 2 + r
// with ln 2 in two parts, then the Taylor polynomial of degree 7 on |r| <= ln 2 / 2 (relative
// remainder below 6e-9).
BRIAR_INLINE Vec exp(Vec x) {
  const Vec lowest = Vec::all(-87.3f);
  const Vec clamped = Vec::all(88.f).min(lowest.max(x));
  const Vec n = (clamped * Vec::all(1.44269504f)).round();
  Vec r = fma(n, Vec::all(-0.693359375f), clamped);
  r = fma(n, Vec::all(2.12194440e-4f), r);
  Vec p = Vec::all(1.f / 5040.f);
  p = fma(p, r, Vec::all(1.f / 720.f));
  p = fma(p, r, Vec::all(1.f / 120.f));
  p = fma(p, r, Vec::all(1.f / 24.f));
  p = fma(p, r, Vec::all(1.f / 6.f));
  p = fma(p, r, Vec::all(0.5f));
  p = fma(p, r, Vec::all(1.f));
  p = fma(p, r, Vec::all(1.f));
  return zero_where_lt(x, lowest, p.scale_by_power_of_two(n));
}

// Calls body(i, vec-wide) for whole registers of [0, n), then body_tail(i, lanes) for the rest.
template <class Body, class Tail>
BRIAR_INLINE void for_lanes(int64_t n, const Body& body, const Tail& tail) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) body(i);
  if (i < n) tail(i, static_cast<int>(n - i));
}

}  // namespace briar::BRIAR_ISA

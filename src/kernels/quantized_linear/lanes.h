// The quantised values of packed panels as registers, per instruction set. Internal to this
// folder; included by files that are compiled once per set.
#pragma once

#include "kernels/cpu/vec.h"
#include "kernels/quantized_linear/block_format.h"

namespace briar::BRIAR_ISA {

// 32 bits of each of kLanes rows.
struct Words {
#if defined(__AVX512F__)
  __m512i v;
  BRIAR_INLINE static Words load(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  BRIAR_INLINE static Words all(int x) { return {_mm512_set1_epi32(x)}; }
  BRIAR_INLINE Words operator&(Words o) const { return {_mm512_and_si512(v, o.v)}; }
  BRIAR_INLINE Words operator|(Words o) const { return {_mm512_or_si512(v, o.v)}; }
  BRIAR_INLINE Words right(int n) const { return {_mm512_srli_epi32(v, static_cast<unsigned>(n))}; }
  BRIAR_INLINE Words left(int n) const { return {_mm512_slli_epi32(v, static_cast<unsigned>(n))}; }
  BRIAR_INLINE Vec to_float() const { return {_mm512_cvtepi32_ps(v)}; }
#else
  __m256i v;
  BRIAR_INLINE static Words load(const uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  BRIAR_INLINE static Words all(int x) { return {_mm256_set1_epi32(x)}; }
  BRIAR_INLINE Words operator&(Words o) const { return {_mm256_and_si256(v, o.v)}; }
  BRIAR_INLINE Words operator|(Words o) const { return {_mm256_or_si256(v, o.v)}; }
  BRIAR_INLINE Words right(int n) const { return {_mm256_srli_epi32(v, n)}; }
  BRIAR_INLINE Words left(int n) const { return {_mm256_slli_epi32(v, n)}; }
  BRIAR_INLINE Vec to_float() const { return {_mm256_cvtepi32_ps(v)}; }
#endif
};

// kLanes fp16, int8 or uint8 numbers as fp32.
BRIAR_INLINE Vec load_half(const uint8_t* p) {
#if defined(__AVX512F__)
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
#else
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
#endif
}
BRIAR_INLINE Vec load_int8(const uint8_t* p) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return Words{_mm512_cvtepi8_epi32(bytes)}.to_float();
#else
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return Words{_mm256_cvtepi8_epi32(bytes)}.to_float();
#endif
}
BRIAR_INLINE Vec load_uint8(const uint8_t* p) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return Words{_mm512_cvtepu8_epi32(bytes)}.to_float();
#else
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return Words{_mm256_cvtepu8_epi32(bytes)}.to_float();
#endif
}

// The nibble of each word that starts at bit `shift`, minus kOffset, as fp32.
template <int kOffset>
BRIAR_INLINE Vec nibble(Words words, int shift) {
#if defined(__AVX512F__)
  // The lookup reads the four low bits of its index: no mask, no conversion, no subtraction.
  const __m512 table =
      _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                    _mm512_set1_ps(kOffset));
  return {_mm512_permutexvar_ps(words.right(shift).v, table)};
#else
  const Vec value = (words.right(shift) & Words::all(15)).to_float();
  return kOffset == 0 ? value : value - Vec::all(kOffset);
#endif
}

// How products are formed. Fp32Math: one column a step; weights and x are fp32. Bf16Math: a pair of
// neighbouring columns a step, both as bf16, the first in the low half of each 32-bit lane. The
// stored integers have at most 8 bits: exact in bf16.
struct Fp32Math {
  static constexpr int kColumns = 1;
  using Input = float;
  BRIAR_INLINE static Vec multiply_add(Vec weights, Vec x, Vec sum) { return fma(weights, x, sum); }

  template <int kOffset>
  BRIAR_INLINE static Vec nibbles(const uint8_t* words, int step) {
    return nibble<kOffset>(Words::load(words + step / 8 * 64), step % 2 * 16 + step % 8 / 2 * 4);
  }
  BRIAR_INLINE static Vec six_bits(const uint8_t* words, const uint8_t* high_words, int step) {
    const Words low = Words::load(words + step / 8 * 64).right(step % 2 * 16 + step % 8 / 2 * 4);
    const Words high =
        Words::load(high_words + step / 16 * 64).right(step % 2 * 16 + step % 16 / 2 * 2);
    const Words value = (low & Words::all(15)) | (high & Words::all(3)).left(4);
    return value.to_float() - Vec::all(32);
  }
  BRIAR_INLINE static Vec int8s(const uint8_t* bytes, int step) {
    return load_int8(bytes + step * 16);
  }
};

#if defined(__AVX512BF16__)
struct Bf16Math {
  static constexpr int kColumns = 2;
  using Input = Bf16;
  BRIAR_INLINE static Vec multiply_add(Vec weights, Vec x, Vec sum) {
    return {_mm512_dpbf16_ps(sum.v, (__m512bh)weights.v, (__m512bh)x.v)};
  }

  struct Table {
    alignas(64) uint16_t bits[32];
    BRIAR_INLINE __m512i load() const { return _mm512_load_si512(bits); }
  };
  // i % period - offset for i = from ... from + 31, as bf16.
  static consteval Table table(int from, int period, int offset) {
    Table t{};
    for (int i = 0; i < 32; ++i) {
      const auto value = static_cast<float>((from + i) % period - offset);
      t.bits[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16);
    }
    return t;
  }
  template <int kOffset>
  BRIAR_INLINE static Vec nibbles(const uint8_t* words, int step) {
    const __m512i index = _mm512_srli_epi16(Words::load(words + step / 4 * 64).v,
                                            static_cast<unsigned>(step % 4 * 4));
    // The lookup reads five bits of its index; the table repeats, so that the fifth does not
    // matter.
    constexpr Table kValues = table(0, 16, kOffset);
    return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(index, kValues.load()))};
  }
  BRIAR_INLINE static Vec six_bits(const uint8_t* words, const uint8_t* high_words, int step) {
    const __m512i low = _mm512_srli_epi16(Words::load(words + step / 4 * 64).v,
                                          static_cast<unsigned>(step % 4 * 4));
    const __m512i high_word = Words::load(high_words + step / 8 * 64).v;
    const int at = step % 8 * 2;
    const __m512i high = at >= 4 ? _mm512_srli_epi16(high_word, static_cast<unsigned>(at - 4))
                                 : _mm512_slli_epi16(high_word, static_cast<unsigned>(4 - at));
    // Bits 0 to 3 of one, the rest of the other; the lookup reads six bits.
    const __m512i index = _mm512_ternarylogic_epi32(_mm512_set1_epi16(15), low, high, 0xca);
    constexpr Table kLow = table(0, 64, 32), kHigh = table(32, 64, 32);
    return {_mm512_castsi512_ps(_mm512_permutex2var_epi16(kLow.load(), index, kHigh.load()))};
  }
  BRIAR_INLINE static Vec int8s(const uint8_t* bytes, int step) {
    const __m512i first = _mm512_castps_si512(load_int8(bytes + step * 32).v);
    const __m512i second = _mm512_castps_si512(load_int8(bytes + step * 32 + 16).v);
    return {_mm512_castsi512_ps(
        _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(first, 16), second))};
  }
};
#endif

}  // namespace briar::BRIAR_ISA

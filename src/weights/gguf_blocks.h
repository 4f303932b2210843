// GGUF's block formats (WireDType from kQ8_0 on): so many consecutive elements of a row share
// scales. d and m below are fp16, q are codes; layouts as ggml-common.h has them.
//
//   Q8_0   32: d, 32 int8                        d q
//   Q4_0   32: d, 16 bytes                       d (q - 8)
//   Q4_1   32: d, m, 16 bytes                    d q + m
//   MXFP4  32: E8M0 scale, 16 bytes of E2M1      e2m1(q) 2^(scale - 127)
//   Q4_K  256: d, m, 12 bytes of eight 6-bit (scale, min) pairs, 128 bytes
//                                                d scale q - m min, a pair for each 32 elements
//   Q6_K  256: 128 bytes of low and 64 of high bits, 16 int8 scales, d
//                                                d scale (q - 32), a scale for each 16 elements
//
// Where a byte holds two 4-bit codes, the low ones are the first half of the (32- or 64-element)
// group and the high ones its second half.
#pragma once

#include <cstdint>
#include <span>

#include "weights/tensor_entry.h"

namespace briar {

inline constexpr int64_t kMaxBlockElements = 256;

// Decodes one block (block_bytes(dtype) bytes) to block_elements(dtype) numbers in fp32:
// products are exact (but for Q6_K's last, which can need 25 bits), a sum is rounded once.
void decode_block(WireDType dtype, const uint8_t* block, float* out);

// Whether all blocks of `bytes` decode to finite numbers: those with fp16 scales do where the
// scales are finite.
bool has_finite_scales(WireDType dtype, std::span<const uint8_t> bytes);

}  // namespace briar

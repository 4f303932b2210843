// Rotary position embedding (Su et al., "RoFormer", 2021), half-split form: element i of a head is
// rotated together with element i + rotary_dim / 2.
#pragma once

#include <span>

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct RopeTableArgs {
  TensorView positions;                    // [num_tokens] int32
  std::span<const float> inv_frequencies;  // [rotary_dim / 2] radians per position
  double attention_factor;                 // multiplies cos and sin
  TensorView cos_sin;                      // [num_tokens, rotary_dim] fp32: cosines, then sines
};

// One table a forward pass, used by every layer. The angle is the fp32 product of position and
// frequency, as in the implementations that models are trained with; cosine and sine of that angle
// are exact to fp32. At position 131,071 the rounding of the angle itself is up to 0.008 radians: a
// more exact angle is another model (docs/numerics.md).
void rope_table(Stream& stream, const RopeTableArgs& args);

inline constexpr int64_t kMaxNormedHeadDim = 256;

struct RopeKvWriteArgs {
  TensorView qkv;  // [num_tokens, (num_q_heads + 2 * num_kv_heads) * head_dim] fp32: q, k, v heads
  TensorView cos_sin;  // [num_tokens, rotary_dim] fp32, rotary_dim == head_dim
  TensorView slots;    // [num_tokens] int32: place in the cache, page_id * page_size + offset
  TensorView q;        // [num_tokens, num_q_heads, head_dim] fp32 or bf16, out
  TensorView
      k_cache;  // [num_pages, page_size, num_kv_heads, head_dim] fp32 or bf16, out at the slots
  TensorView v_cache;  // like k_cache
  // Both or neither: before the rotation every head of q and k is divided by the root of its mean
  // square plus eps, and multiplied by these.
  TensorView q_norm = {};  // [head_dim] fp32 or bf16, head_dim at most kMaxNormedHeadDim
  TensorView k_norm = {};  // like q_norm
  float norm_eps = 0;
};

// Normalises q and k if asked to, rotates them, rounds each once, writes q out and k, v into their
// slots of the paged cache.
void rope_kv_write(Stream& stream, const RopeKvWriteArgs& args);

}  // namespace briar

// Rotary embedding frequencies, host only.
//
// YaRN: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023,
// section 3.2 ("NTK-by-parts") and 3.4 (attention factor 0.1 ln(s) + 1), as gpt-oss uses it.
#pragma once

#include <vector>

namespace briar {

struct RopeParams {
  int rotary_dim = 0;  // even; the number of rotated elements of a head
  double theta = 10000;
  // YaRN; factor == 1 means plain RoPE and the rest is unused.
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_max_position = 4096;
  bool truncate = true;         // round the ramp's bounds outwards to whole dimensions
  double attention_factor = 1;  // multiplies cos and sin
};

// 0.1 ln(factor) + 1 for factor > 1, else 1.
double yarn_attention_factor(double factor);

// Angle per position of each of the rotary_dim / 2 pairs.
std::vector<double> rope_inv_frequencies(const RopeParams& params);

}  // namespace briar

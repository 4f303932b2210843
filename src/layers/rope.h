// Rotary position embedding of a model: shared by its layers.
#pragma once

#include <vector>

#include "layers/context.h"
#include "weights/rope_config.h"

namespace briar {

// Radians per position of each of the head_dim / 2 pairs; all kinds of scaling change only these
// (and the factor on cos and sin, RopeScaling::attention_scale()):
//   default   theta^(-2 i / head_dim)
//   linear    ... / factor (Chen et al., "Extending Context Window ...", 2023)
//   llama3    ... / factor where a turn takes more than original_max_position / low_freq_factor
//             positions, unchanged where it takes fewer than ... / high_freq_factor, and linear in
//             the number of turns in between (Llama 3.1's model card)
//   yarn      kernels/rope/yarn.h
//   per_pair  ... / divisors[i]
std::vector<double> rope_frequencies(const RopeScaling& scaling, int64_t head_dim);

class Rope {
 public:
  Rope(const RopeScaling& scaling, int64_t head_dim);
  // cos and sin of every token of the batch: [num_tokens, head_dim] fp32 in the workspace.
  TensorView table(Stream& stream, Arena& workspace, const TensorView& positions) const;

 private:
  std::vector<float> inv_frequencies_;
  double attention_factor_;
};

}  // namespace briar

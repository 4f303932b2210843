// Grouped-query attention over the paged cache: qkv projection, RoPE, attention, output projection.
#pragma once

#include <vector>

#include "kernels/rope/yarn.h"
#include "layers/context.h"
#include "layers/linear.h"

namespace briar {

// Rotary embedding of a model: shared by its layers.
class Rope {
 public:
  explicit Rope(const RopeParams& params);
  // cos and sin of every token of the batch: [num_tokens, rotary_dim] fp32 in the workspace.
  TensorView table(Stream& stream, Arena& workspace, const TensorView& positions) const;

 private:
  std::vector<float> inv_frequencies_;
  double attention_factor_;
};

struct Attention {
  Linear qkv_proj;   // [(num_q_heads + 2 num_kv_heads) head_dim, hidden_size]
  Linear o_proj;     // [hidden_size, num_q_heads head_dim]
  TensorView sinks;  // [num_q_heads] fp32; absent = none
  int64_t num_q_heads = 0;
  int64_t head_dim = 0;
  float scale = 0;  // of q.k, before the softmax
  int window = 0;   // 0 = full attention
  KvKind kv_kind = KvKind::kFull;
  int layer_idx = 0;  // of the KV cache

  // x: [num_tokens, hidden_size] in the activation dtype.
  PartialSum forward(const ForwardContext& ctx, const TensorView& x) const;
};

}  // namespace briar

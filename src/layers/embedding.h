// Token embedding: ids to the first rows of the residual stream.
#pragma once

#include "layers/context.h"

namespace briar {

struct Embedding {
  TensorView table;  // [vocab_size, hidden_size]

  // Returns [num_tokens, hidden_size] fp32 in the workspace.
  TensorView forward(const ForwardContext& ctx) const;
};

}  // namespace briar

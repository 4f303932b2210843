// Token embedding: ids to the first rows of the residual stream.
#pragma once

#include "layers/context.h"
#include "layers/linear.h"

namespace briar {

struct Embedding {
  WeightRows table;  // vocab_size rows of hidden_size
  int64_t hidden_size = 0;

  // The head of a model that ties it to its embedding.
  Linear tied_head() const { return {.weight = {table}, .bias = {}}; }

  // Returns [num_tokens, hidden_size] fp32 in the workspace.
  TensorView forward(const ForwardContext& ctx) const;
};

}  // namespace briar

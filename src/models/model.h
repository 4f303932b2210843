// What the engine knows of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batch/kv_kind.h"
#include "layers/context.h"
#include "weights/hf_config.h"
#include "weights/weight_loader.h"

namespace briar {

struct ModelInfo {
  std::string architecture;   // as config.json spells it
  std::string model_type;     // "gpt_oss": chooses the chat format
  int64_t vocab_size = 0;     // rows of embedding and head
  int64_t max_model_len = 0;  // positions
  int64_t hidden_size = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int window = 0;                   // of the kWindow layers; 0 = there are none
  std::vector<KvKind> layer_kinds;  // one a layer
  // Bytes of weights that one token's forward pass reads (each chosen expert once, the whole head):
  // the floor of decoding.
  int64_t bytes_per_token = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Runs all layers over ctx.batch, writes the KV cache, and returns the final hidden states of
  // batch.output_rows, normalised: [num_outputs, hidden_size] in the activation dtype, in the
  // workspace.
  virtual TensorView forward(ForwardContext& ctx) const = 0;
  // hidden: rows of forward()'s result; out: [rows, vocab_size] fp32.
  virtual void logits(Stream& stream, const TensorView& hidden, const TensorView& out) const = 0;

  // Upper bound of the workspace that forward() takes for this many tokens.
  virtual int64_t workspace_bytes(int64_t num_tokens) const = 0;
};

struct ModelConfig {
  HfConfig hf;
  Precision precision;
};

}  // namespace briar

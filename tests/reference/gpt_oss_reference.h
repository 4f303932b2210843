// The whole gpt-oss model in fp64 with plain loops: what Briar's forward pass is judged by. It
// shares only the reading of files with the product, none of its arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace briar::reference {

// Ways to get gpt-oss subtly wrong. Tests switch them on to prove that their bounds notice.
enum class Mistake {
  kNone,
  kWindow127,          // sliding layers see 127 tokens instead of 128
  kWindow129,          // ... 129 tokens
  kYarnTruncated,      // YaRN's ramp with bounds rounded to whole dimensions
  kNoAttentionFactor,  // cos and sin without YaRN's factor
  kNoClamp,            // SwiGLU without limits
  kAlphaOne,           // sigmoid(gate) instead of sigmoid(1.702 gate)
  kNoPlusOne,          // up instead of up + 1
  kSoftmaxBeforeTopK,  // experts weighted by the softmax over all experts
  kNoSinks,            // plain softmax in attention
  kNoQBias,            // all layers without this bias; likewise below
  kNoKBias,
  kNoVBias,
  kNoOBias,
  kNoRouterBias,
  kNoGateUpBias,
  kNoDownBias,
  kExpertWeightsBf16,  // the chosen experts' softmax weights rounded to bf16
};

// "kWindow127"
const char* to_string(Mistake mistake);

// Sizes and constants of config.json.
struct GptOssConfig {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_q_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t vocab_size = 0;
  int64_t sliding_window = 0;
  std::vector<bool> is_sliding;  // [num_layers]
  double rms_norm_eps = 0;
  double swiglu_limit = 0;
  double rope_theta = 0;
  double yarn_factor = 0;
  double yarn_beta_fast = 0;
  double yarn_beta_slow = 0;
  double yarn_original_length = 0;
  bool yarn_truncate = false;
};

class GptOssReference {
 public:
  // Reads a Hugging Face folder with bf16 weights and MXFP4 experts. Throws on anything else.
  explicit GptOssReference(const std::string& directory);
  ~GptOssReference();

  struct Output {
    std::vector<double> logprobs;      // [num_tokens - 1] of tokens[1:], natural logarithm
    std::vector<double> final_logits;  // [vocab_size] after the last token
  };
  // Runs `tokens` (at least one) at positions 0, 1, ...
  Output run(std::span<const int32_t> tokens, Mistake mistake = Mistake::kNone) const;

  const GptOssConfig& config() const { return config_; }

 private:
  struct Layer;
  // [num_tokens][hidden_size] after the final norm.
  std::vector<std::vector<double>> hidden_states(std::span<const int32_t> tokens,
                                                 Mistake mistake) const;

  GptOssConfig config_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::span<const uint8_t> embedding_;  // [vocab_size, hidden_size] bf16, in the checkpoint
  std::span<const uint8_t> head_;       // likewise
  std::vector<Layer> layers_;
  std::vector<float> final_norm_;  // [hidden_size]
};

}  // namespace briar::reference

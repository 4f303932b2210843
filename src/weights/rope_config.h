// Rotary position embedding as config.json describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace briar {

class HfConfig;

// kPerPair is no kind of Hugging Face's: GGUF files carry Llama 3's scaling as a tensor of
// divisors.
enum class RopeKind { kDefault, kLinear, kYarn, kLlama3, kPerPair };

// "yarn"
const char* to_string(RopeKind kind);

// Fields that a kind does not use keep their initial values.
struct RopeScaling {
  RopeKind kind = RopeKind::kDefault;
  double theta = 0;
  double factor = 1;                             // linear, yarn, llama3
  int64_t original_max_position_embeddings = 0;  // yarn, llama3
  double beta_fast = 32;                         // yarn
  double beta_slow = 1;                          // yarn
  bool truncate = true;                          // yarn: whether the ramp's bounds are rounded
  std::optional<double> attention_factor;        // yarn
  std::optional<double> mscale;                  // yarn, DeepSeek's form
  std::optional<double> mscale_all_dim;          // yarn, DeepSeek's form
  double low_freq_factor = 1;                    // llama3
  double high_freq_factor = 4;                   // llama3
  std::vector<double> divisors;                  // per_pair: of each pair's frequency
  double partial_rotary_factor = 1;

  // What cos and sin are multiplied by: the given attention factor, the quotient of DeepSeek's two
  // mscales, or 0.1 ln(factor) + 1.
  double attention_scale() const;

  bool operator==(const RopeScaling&) const = default;
};

// Reads transformers v4 (`rope_theta` and `rope_scaling`), v5 (`rope_parameters`, also one a layer
// type if all are equal) and OpenAI's original gpt-oss spelling (`rope_scaling_factor`,
// `rope_ntk_alpha`, ...). Throws UserError for an unknown kind, a missing or bad number, and for
// two spellings that disagree. `default_theta` stands in for a file without any theta.
RopeScaling read_rope(const HfConfig& config, std::optional<double> default_theta = {});

// For models that are wrong without scaling (gpt-oss): anything else than `kind` is a UserError.
RopeScaling read_rope_of_kind(const HfConfig& config, RopeKind kind);

}  // namespace briar

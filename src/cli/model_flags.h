// What the commands that run a model share: flags, tokenizer, progress on standard error.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "briar/engine.h"
#include "tokenizer/tokenizer.h"
#include "weights/hf_config.h"

namespace briar {

// Text on standard error that nobody depends on: whether it can be written does not matter.
void print_note_text(const std::string& text);
template <class... Args>
void print_note(fmt::format_string<Args...> text, Args&&... args) {
  print_note_text(fmt::format(text, std::forward<Args>(args)...));
}

struct ModelFlags {
  EngineOptions engine;
  std::string head_precision;          // bf16, or fp32 with --precision fp32
  std::string batch_invariant = "on";  // the CPU kernels are batch-invariant in either case
  std::string overlap = "on";
  std::string cuda_graphs = "off";
  std::string prefix_cache = "on";
  bool quiet = false;  // no memory plan, no progress
};

// Flags that ask for what this build does not have are a UserError.
void check_flags(const ModelFlags& flags);

// Creates the engine; plan and progress go to standard error unless flags.quiet.
std::unique_ptr<Engine> create_engine(const ModelFlags& flags);

// The folder's tokenizer; for gpt-oss folders without tokenizer files, the bundled one. Throws
// UserError.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& model,
                                                const std::string& model_type);

// The folder's generation_config.json. Throws UserError.
GenerationConfig load_generation_config(const std::string& model);

// `model_type` of config.json; "gpt_oss" for OpenAI's own folders, which lack it. Throws UserError.
std::string read_model_type(const std::string& model);

struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
};

// What the flags leave open comes from the model's generation_config.json. Without any seed one is
// drawn.
SamplingParams sampling_params(const SamplingFlags& flags, const GenerationConfig& config);

}  // namespace briar

#include "models/registry.h"

#include <algorithm>

#include "models/gpt_oss.h"
#include "models/llama.h"

namespace briar {
namespace {

struct Entry {
  const char* architecture;
  const char* model_type;
  std::unique_ptr<Model> (*make)(const ModelConfig&, WeightLoader&);
};

constexpr Entry kModels[] = {
    {"GptOssForCausalLM", "gpt_oss", make_gpt_oss},  {"LlamaForCausalLM", "llama", make_llama},
    {"MistralForCausalLM", "mistral", make_mistral}, {"Qwen2ForCausalLM", "qwen2", make_qwen2},
    {"Qwen3ForCausalLM", "qwen3", make_qwen3},
};

}  // namespace

std::unique_ptr<Model> make_model(const ModelConfig& config, WeightLoader& loader) {
  std::string wanted = config.hf.find_string("model_type").value_or("");
  if (config.hf.has("architectures")) {
    const std::vector<std::string> names = config.hf.strings("architectures");
    if (!names.empty()) wanted = names.front();
  }
  // OpenAI's own gpt-oss folders name neither.
  if (wanted.empty() && is_original_gpt_oss(config.hf)) wanted = "gpt_oss";
  std::string known;
  for (const Entry& entry : kModels) {
    if (wanted == entry.architecture || wanted == entry.model_type)
      return entry.make(config, loader);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.architecture);
  }
  throw_user_error("{}: architecture \"{}\" is not supported; supported: {}", config.hf.file(),
                   wanted, known);
}

}  // namespace briar

#include "models/registry.h"

#include <algorithm>

#include "models/gpt_oss.h"

namespace briar {
namespace {

struct Entry {
  const char* architecture;
  const char* model_type;
  std::unique_ptr<Model> (*make)(const ModelConfig&, WeightLoader&);
};

constexpr Entry kModels[] = {
    {"GptOssForCausalLM", "gpt_oss", make_gpt_oss},
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

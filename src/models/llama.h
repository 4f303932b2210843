#pragma once

#include <memory>

#include "models/model.h"

namespace briar {

// Dense decoders with grouped-query attention, RoPE and a SwiGLU block. They share every layer and
// differ in options alone.
std::unique_ptr<Model> make_llama(const ModelConfig& config, WeightLoader& loader);
std::unique_ptr<Model> make_mistral(const ModelConfig& config, WeightLoader& loader);
std::unique_ptr<Model> make_qwen2(const ModelConfig& config, WeightLoader& loader);
std::unique_ptr<Model> make_qwen3(const ModelConfig& config, WeightLoader& loader);

}  // namespace briar

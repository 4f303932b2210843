#pragma once

#include <memory>

#include "models/model.h"

namespace briar {

// OpenAI's gpt-oss family (model card: arXiv 2508.10925).
std::unique_ptr<Model> make_gpt_oss(const ModelConfig& config, WeightLoader& loader);

// True for the config.json of OpenAI's `original/` folders, which names no architecture.
bool is_original_gpt_oss(const HfConfig& config);

}  // namespace briar

// Which architectures there are.
#pragma once

#include <memory>

#include "models/model.h"

namespace briar {

// Builds the model that config.json's `architectures` (or `model_type`) names, with weights from
// the loader; in the loader's plan pass the model has no data and only info() and workspace_bytes()
// may be called. An unknown architecture is a UserError that lists the known ones.
std::unique_ptr<Model> make_model(const ModelConfig& config, WeightLoader& loader);

}  // namespace briar

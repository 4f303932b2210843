// Everything that create() builds: device, weights, model, memory plan.
#pragma once

#include <memory>

#include "briar/engine.h"
#include "device/arena.h"
#include "device/device.h"
#include "engine/memory_plan.h"
#include "models/model.h"

namespace briar {

struct LoadedModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> weights;
  std::unique_ptr<Model> model;
  Precision precision;
  DType kv_dtype = DType::kBf16;
  MemoryPlan memory;
};

// Throws UserError.
LoadedModel load_model(const EngineOptions& options);

}  // namespace briar

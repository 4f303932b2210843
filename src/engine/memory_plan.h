// How the device's memory is divided, decided before any of it is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "briar/engine.h"
#include "models/model.h"

namespace briar {

struct MemoryPlan {
  int64_t weight_bytes = 0;
  std::string weight_note;  // which quantised weights stay so
  int64_t workspace_bytes = 0;
  int64_t logits_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t available_bytes = 0;
  int64_t max_model_len = 0;
  int32_t num_logit_rows = 0;                     // rows of logits computed at once
  std::array<int32_t, kNumKvKinds> num_pages{};   // by KvKind
  std::array<int64_t, kNumKvKinds> page_bytes{};  // of all layers of the kind

  int64_t total_bytes() const { return weight_bytes + workspace_bytes + logits_bytes + kv_bytes; }
  // A table of a few lines.
  std::string describe(const EngineOptions& options) const;
};

// Throws UserError, with the table, if it does not fit into `available_bytes`.
MemoryPlan plan_memory(const EngineOptions& options, const Model& model, DType kv_dtype,
                       int64_t weight_bytes, int64_t available_bytes);

}  // namespace briar

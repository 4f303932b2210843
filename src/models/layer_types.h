// Config fields that several families spell alike.
#pragma once

#include <optional>
#include <vector>

#include "weights/hf_config.h"

namespace briar {

// `layer_types`: true for "sliding_attention", false for "full_attention". Absent where the file
// has no such key; an unknown type or a wrong count is a UserError.
std::optional<std::vector<bool>> read_layer_types(const HfConfig& hf, int64_t num_layers);

}  // namespace briar

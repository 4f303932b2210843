#include "models/layer_types.h"

namespace briar {

std::optional<std::vector<bool>> read_layer_types(const HfConfig& hf, int64_t num_layers) {
  if (!hf.has("layer_types")) return std::nullopt;
  std::vector<bool> is_window;
  for (const std::string& type : hf.strings("layer_types")) {
    if (type != "sliding_attention" && type != "full_attention") {
      hf.fail("layer_types", "but only sliding_attention and full_attention are known");
    }
    is_window.push_back(type == "sliding_attention");
  }
  if (static_cast<int64_t>(is_window.size()) != num_layers) {
    hf.fail("layer_types", fmt::format("which has {} entries for num_hidden_layers = {}",
                                       is_window.size(), num_layers));
  }
  return is_window;
}

}  // namespace briar

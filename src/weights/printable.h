// Text from a file, made fit for a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace briar {

// Control characters become \xNN and what exceeds `max_bytes` becomes "...": a tensor's name comes
// from a file that may be hostile, and an error is one line.
std::string printable(std::string_view text, size_t max_bytes = 160);

// "[12, 320, 9]"
template <class Sizes>
std::string shape_text(const Sizes& shape) {
  std::string text = "[";
  for (const auto size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace briar

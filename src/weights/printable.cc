#include "weights/printable.h"

#include <fmt/format.h>

namespace briar {

std::string printable(std::string_view text, size_t max_bytes) {
  const bool is_cut = text.size() > max_bytes;
  if (is_cut) {
    size_t end = max_bytes;
    // Not in the middle of a UTF-8 sequence.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return is_cut ? out + "..." : out;
}

}  // namespace briar

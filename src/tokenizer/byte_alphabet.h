// GPT-2's byte alphabet: how byte-level vocabularies spell bytes as characters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/utf8.h"

namespace briar {

// Printable Latin-1 characters stand for themselves, the other bytes, in order, for the code points
// from U+0100.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(kNone);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      bytes_[is_printable ? byte : next++] = static_cast<int16_t>(byte);
    }
  }

  // The bytes that `text` spells; false if it has a character outside the alphabet.
  bool decode(std::string_view text, std::string& out) const {
    out.clear();
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const Utf8Char c = decode_utf8_char(p, end);
      if (c.code_point >= bytes_.size() || bytes_[c.code_point] == kNone) return false;
      out += static_cast<char>(bytes_[c.code_point]);
      p += c.length;
    }
    return true;
  }

 private:
  static constexpr int16_t kNone = -1;
  std::array<int16_t, 324> bytes_;
};

}  // namespace briar

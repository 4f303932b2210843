// Decoding of UTF-8 that may be ill-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace briar {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

// The character at the start of a non-empty text.
struct Utf8Char {
  enum class Form : uint8_t {
    kValid,
    kIllFormed,   // `length` bytes are a maximal ill-formed part (Unicode 16.0, section 3.9)
    kIncomplete,  // all the text is the beginning of one character
  };
  uint32_t code_point = kReplacementCharacter;  // U+FFFD unless valid
  uint8_t length = 1;                           // bytes, at least 1
  Form form = Form::kIllFormed;
};

// `begin` < `end`.
Utf8Char decode_utf8_char(const char* begin, const char* end);

// Appends `bytes` to `out` with each maximal ill-formed part as one U+FFFD and returns how many
// bytes that took: fewer than all only if the last bytes (at most 3) begin a character and are held
// back.
size_t append_complete_utf8(std::string_view bytes, std::string& out);

// The lossy decoding of a whole text.
std::string lossy_utf8(std::string_view bytes);

}  // namespace briar

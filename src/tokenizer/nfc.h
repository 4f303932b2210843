// Unicode normalization form C, as some tokenizers (Qwen) want their text.
#pragma once

#include <string>
#include <string_view>

namespace briar {

// Whether `text` can be seen at a glance to be in form C: all its characters are below U+0300.
bool is_surely_nfc(std::string_view text);

// The text in form C, in O(n log n). Ill-formed parts stay as they are. By utf8proc's tables (2.8:
// Unicode 15).
std::string to_nfc(std::string_view text);

}  // namespace briar

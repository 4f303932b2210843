// SentencePiece's spelling of tokens: U+2581 is a space, <0x0A> is a byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace briar {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// The text with each U+2581 as a space.
std::string with_spaces(std::string_view text);

// The byte that a token such as <0x0A> stands for.
std::optional<uint8_t> byte_token(std::string_view spelling);

// Whether some token has a space behind a character that is none. If none has, no token crosses the
// boundary between two words, and words can be encoded one by one.
bool has_token_across_words(const std::vector<std::string>& tokens);

}  // namespace briar

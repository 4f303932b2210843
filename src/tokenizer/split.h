// The splits by hand: they cut a text into the pieces that BPE merges within.
//
// The regex of o200k, alternatives in order, with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}],
// W = [\p{Ll}\p{Lm}\p{Lo}\p{M}], P = [^\r\n\p{L}\p{N}]? and C = (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
//   P U* W+ C  |  P U+ W* C  |  \p{N}{1,3}  |  ?[^\s\p{L}\p{N}]+[\r\n/]*  |  \s*[\r\n]+
//   |  \s+(?!\S)  |  \s+
// The others are written out below. Known regexes are scanned by hand because that takes Unicode
// 16.0's classes and is about four times as fast as PCRE2, which regex_split.h has for all others.
//
// An ill-formed part of the text is one character of class kOther, as the U+FFFD that a lossy
// decoding shows in its place would be; its bytes stay in their piece as they are.
#pragma once

#include <string_view>

namespace briar {

inline constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Llama 3, and cl100k before it.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// End of the piece that starts at `begin`; `begin` < `end`. Over a whole text this takes linear
// time.
using PieceEnd = const char* (*)(const char* begin, const char* end);

const char* piece_end(const char* begin, const char* end);  // o200k
const char* llama3_piece_end(const char* begin, const char* end);
const char* qwen2_piece_end(const char* begin, const char* end);
const char* gpt2_piece_end(const char* begin, const char* end);
// A character of \p{N} on its own, else up to the next one.
const char* single_digit_piece_end(const char* begin, const char* end);
// A run of \p{N}, else up to the next one.
const char* digits_piece_end(const char* begin, const char* end);
// Spaces and the word after them: up to the next space behind a character that is none.
const char* word_piece_end(const char* begin, const char* end);
// A space and the word after it: up to the next space.
const char* space_piece_end(const char* begin, const char* end);

}  // namespace briar

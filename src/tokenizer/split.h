// The o200k split: cuts a text into the pieces that BPE merges within.
//
// The regex it implements, alternatives in order, with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}],
// W = [\p{Ll}\p{Lm}\p{Lo}\p{M}], P = [^\r\n\p{L}\p{N}]? and C = (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
//   P U* W+ C  |  P U+ W* C  |  \p{N}{1,3}  |  ?[^\s\p{L}\p{N}]+[\r\n/]*  |  \s*[\r\n]+
//   |  \s+(?!\S)  |  \s+
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

// End of the piece that starts at `begin`; `begin` < `end`. Over a whole text this takes linear
// time.
const char* piece_end(const char* begin, const char* end);

}  // namespace briar

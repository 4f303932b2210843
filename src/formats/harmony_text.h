// Splitting of header text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace briar {

// Offset of the first Unicode White_Space character at or after `begin`; npos if there is none.
size_t find_white_space(std::string_view text, size_t begin);

// Without Unicode White_Space at both ends.
std::string_view trim_white_space(std::string_view text);

bool is_ascii_space(char c);

// Words between ASCII spaces: a no-break space does not split.
std::vector<std::string> split_ascii_words(std::string_view text);

}  // namespace briar

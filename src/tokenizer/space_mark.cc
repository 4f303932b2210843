#include "tokenizer/space_mark.h"

#include <algorithm>
#include <charconv>

namespace briar {
namespace {

bool is_across_words(std::string_view token) {
  const size_t word = std::min(token.find_first_not_of(' '), token.size());
  return token.find(' ', word) != token.npos;
}

}  // namespace

std::string with_spaces(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t mark = std::min(text.find(kSpaceMark, begin), text.size());
    out += text.substr(begin, mark - begin);
    if (mark < text.size()) out += ' ';
    begin = mark + kSpaceMark.size();
  }
  return out;
}

std::optional<uint8_t> byte_token(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') {
    return std::nullopt;
  }
  uint8_t byte = 0;
  const auto parsed = std::from_chars(spelling.data() + 3, spelling.data() + 5, byte, 16);
  if (parsed.ptr != spelling.data() + 5) return std::nullopt;
  return byte;
}

bool has_token_across_words(const std::vector<std::string>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), is_across_words);
}

}  // namespace briar

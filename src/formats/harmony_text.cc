#include "formats/harmony_text.h"

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

bool is_white_space(const Utf8Char& character) {
  if (character.form != Utf8Char::Form::kValid) return false;
  const CharClass kind = char_class(character.code_point);
  return kind == CharClass::kSpace || kind == CharClass::kNewline;
}

}  // namespace

size_t find_white_space(std::string_view text, size_t begin) {
  for (size_t at = begin; at < text.size();) {
    const Utf8Char character = decode_utf8_char(text.data() + at, text.data() + text.size());
    if (is_white_space(character)) return at;
    at += character.length;
  }
  return text.npos;
}

std::string_view trim_white_space(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char character = decode_utf8_char(text.data() + at, text.data() + text.size());
    if (!is_white_space(character)) {
      if (begin == text.size()) begin = at;
      end = at + character.length;
    }
    at += character.length;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

bool is_ascii_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

std::vector<std::string> split_ascii_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    if (is_ascii_space(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !is_ascii_space(text[end])) ++end;
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace briar

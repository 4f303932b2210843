#include "tokenizer/split.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = CharClass::kUpper;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = CharClass::kLower;
  for (int c = '0'; c <= '9'; ++c) classes[c] = CharClass::kNumber;
  for (char c : {' ', '\t', '\v', '\f'}) classes[c] = CharClass::kSpace;
  for (char c : {'\r', '\n'}) classes[c] = CharClass::kNewline;
  return classes;
}();

struct Char {
  CharClass char_class;
  uint8_t length;
};

[[gnu::noinline]] Char non_ascii_char(const char* p, const char* end) {
  const Utf8Char c = decode_utf8_char(p, end);
  return {char_class(c.code_point), c.length};
}

inline Char char_at(const char* p, const char* end) {
  const auto byte = static_cast<uint8_t>(*p);
  if (byte < 0x80) [[likely]]
    return {kAsciiClasses[byte], 1};
  return non_ascii_char(p, end);
}

inline bool in_word(CharClass c) { return c >= CharClass::kUpper && c <= CharClass::kMark; }

// Lower-case ASCII letters are the bulk of most texts.
inline const char* skip_ascii_lower(const char* p, const char* end) {
  while (p < end && static_cast<uint8_t>(*p - 'a') < 26) ++p;
  return p;
}

// Skips one of 's 't 're 've 'm 'll 'd in any case. U+017F (long s) folds to s; no other letter of
// these has a non-ASCII fold.
const char* skip_contraction(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return p;
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  const char first = lower(p[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if (end - p < 3) return p;
  if (p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
  const char second = lower(p[2]);
  const bool matches = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                       (first == 'l' && second == 'l');
  return matches ? p + 3 : p;
}

// W* C of the first two alternatives.
const char* lower_run_end(const char* p, const char* end) {
  while ((p = skip_ascii_lower(p, end)) < end) {
    const Char c = char_at(p, end);
    if (!in_word(c.char_class) || c.char_class == CharClass::kUpper) break;
    p += c.length;
  }
  return skip_contraction(p, end);
}

// U* W+ C, else U+ W* C, at a letter or mark: one of them matches. U* takes all it can; if no W
// follows it gives characters back up to the last one that is also a W.
const char* word_end(const char* p, const char* end) {
  const char* last_both_end = nullptr;
  while (p < end) {
    const Char c = char_at(p, end);
    if (c.char_class == CharClass::kLower) return lower_run_end(p, end);
    if (!in_word(c.char_class)) break;
    p += c.length;
    if (c.char_class != CharClass::kUpper) last_both_end = p;
  }
  return skip_contraction(last_both_end != nullptr ? last_both_end : p, end);
}

// \p{N}{1,limit}
const char* number_end(const char* p, const char* end, size_t limit) {
  for (size_t i = 0; i < limit && p < end; ++i) {
    const Char c = char_at(p, end);
    if (c.char_class != CharClass::kNumber) break;
    p += c.length;
  }
  return p;
}

inline bool is_symbol(CharClass c) { return c == CharClass::kOther || c == CharClass::kMark; }
inline bool is_space(CharClass c) { return c == CharClass::kSpace || c == CharClass::kNewline; }
inline bool is_letter(CharClass c) { return c >= CharClass::kUpper && c <= CharClass::kBothCases; }

// [^\s\p{L}\p{N}]+
const char* symbol_run_end(const char* p, const char* end) {
  while (p < end) {
    const Char c = char_at(p, end);
    if (!is_symbol(c.char_class)) break;
    p += c.length;
  }
  return p;
}

// [^\s\p{L}\p{N}]+[\r\n]*, and with / in the second class
const char* symbols_end(const char* p, const char* end, bool takes_slashes) {
  p = symbol_run_end(p, end);
  while (p < end && (*p == '\r' || *p == '\n' || (takes_slashes && *p == '/'))) ++p;
  return p;
}

// \p{L}+
const char* letters_end(const char* p, const char* end) {
  while ((p = skip_ascii_lower(p, end)) < end) {
    const Char c = char_at(p, end);
    if (!is_letter(c.char_class)) break;
    p += c.length;
  }
  return p;
}

// \s+(?!\S)|\s+ at a white space.
const char* plain_space_end(const char* p, const char* end) {
  const char* const begin = p;
  const char* last_start = p;
  while (p < end) {
    const Char c = char_at(p, end);
    if (!is_space(c.char_class)) break;
    last_start = p;
    p += c.length;
  }
  return p == end || last_start == begin ? p : last_start;
}

// The last three alternatives at a white space that starts neither a word nor symbols.
const char* white_space_end(const char* p, const char* end) {
  const char* const begin = p;
  const char* last_newline_end = nullptr;
  const char* last_start = p;
  while (p < end) {
    const Char c = char_at(p, end);
    if (!is_space(c.char_class)) break;
    last_start = p;
    p += c.length;
    if (c.char_class == CharClass::kNewline) last_newline_end = p;
  }
  if (last_newline_end != nullptr) return last_newline_end;
  return p == end || last_start == begin ? p : last_start;
}

template <size_t kMaxDigits>
const char* llama3_like_piece_end(const char* begin, const char* end) {
  const Char first = char_at(begin, end);
  if (is_letter(first.char_class)) return letters_end(begin, end);
  if (first.char_class == CharClass::kNumber) return number_end(begin, end, kMaxDigits);
  if (first.char_class == CharClass::kNewline) return white_space_end(begin, end);
  if (*begin == '\'') {
    const char* const contraction_end = skip_contraction(begin, end);
    if (contraction_end != begin) return contraction_end;
  }
  // A space or a symbol: letters may follow it in the same piece.
  const char* const next = begin + first.length;
  if (next == end) return end;
  const CharClass second = char_at(next, end).char_class;
  if (is_letter(second)) return letters_end(next, end);
  if (is_symbol(first.char_class)) return symbols_end(begin, end, false);
  if (*begin == ' ' && is_symbol(second)) return symbols_end(next, end, false);
  return white_space_end(begin, end);
}

// 's 't 're 've 'm 'll 'd, in lower case only.
const char* skip_lower_contraction(const char* p, const char* end) {
  const std::string_view rest(p, static_cast<size_t>(end - p));
  for (const std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (rest.starts_with(word)) return p + word.size();
  }
  return p;
}

}  // namespace

const char* llama3_piece_end(const char* begin, const char* end) {
  return llama3_like_piece_end<3>(begin, end);
}

const char* qwen2_piece_end(const char* begin, const char* end) {
  return llama3_like_piece_end<1>(begin, end);
}

const char* gpt2_piece_end(const char* begin, const char* end) {
  if (*begin == '\'') {
    const char* const contraction_end = skip_lower_contraction(begin, end);
    if (contraction_end != begin) return contraction_end;
  }
  const char* const run = *begin == ' ' && begin + 1 < end ? begin + 1 : begin;
  const CharClass c = char_at(run, end).char_class;
  if (is_letter(c)) return letters_end(run, end);
  if (c == CharClass::kNumber) return number_end(run, end, std::string_view::npos);
  if (is_symbol(c)) return symbol_run_end(run, end);
  return plain_space_end(begin, end);
}

const char* single_digit_piece_end(const char* begin, const char* end) {
  const char* p = begin;
  while (p < end) {
    const Char c = char_at(p, end);
    if (c.char_class == CharClass::kNumber) return p == begin ? p + c.length : p;
    p += c.length;
  }
  return end;
}

const char* digits_piece_end(const char* begin, const char* end) {
  const bool is_number = char_at(begin, end).char_class == CharClass::kNumber;
  const char* p = begin;
  while (p < end) {
    const Char c = char_at(p, end);
    if ((c.char_class == CharClass::kNumber) != is_number) break;
    p += c.length;
  }
  return p;
}

const char* word_piece_end(const char* begin, const char* end) {
  const char* p = begin;
  while (p < end && *p == ' ') ++p;
  while (p < end && *p != ' ') ++p;
  return p;
}

const char* space_piece_end(const char* begin, const char* end) {
  const char* p = begin + 1;
  while (p < end && *p != ' ') ++p;
  return p;
}

const char* piece_end(const char* begin, const char* end) {
  const Char first = char_at(begin, end);
  if (in_word(first.char_class)) return word_end(begin, end);
  if (first.char_class == CharClass::kNumber) return number_end(begin, end, 3);
  if (first.char_class == CharClass::kNewline) return white_space_end(begin, end);
  // A space or a symbol: a word may follow it in the same piece.
  const char* const next = begin + first.length;
  if (next == end) return end;
  const CharClass second = char_at(next, end).char_class;
  if (in_word(second)) return word_end(next, end);
  if (first.char_class == CharClass::kOther) return symbols_end(begin, end, true);
  if (*begin == ' ' && second == CharClass::kOther) return symbols_end(next, end, true);
  return white_space_end(begin, end);
}

}  // namespace briar

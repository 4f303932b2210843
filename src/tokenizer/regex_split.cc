#include "tokenizer/regex_split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

namespace briar {

Result<std::shared_ptr<const RegexSplit>> RegexSplit::compile(std::string_view pattern) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       kOptions, &code, &offset, nullptr);
  if (compiled == nullptr) {
    PCRE2_UCHAR message[128];
    pcre2_get_error_message(code, message, sizeof(message));
    return make_error("the regular expression {} is wrong at byte {}: {}", pattern, offset,
                      reinterpret_cast<const char*>(message));
  }
  // Without a just-in-time compiler for this processor matching is slower, but the same.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  return std::shared_ptr<const RegexSplit>(new RegexSplit(compiled));
}

RegexSplit::~RegexSplit() { pcre2_code_free(code_); }

RegexPieces::RegexPieces(const RegexSplit& split, std::string_view text)
    : split_(split), text_(text), match_(pcre2_match_data_create(1, nullptr)) {
  CHECK(match_ != nullptr, "no memory for a match");
}

RegexPieces::~RegexPieces() { pcre2_match_data_free(match_); }

std::string_view RegexPieces::take(size_t end) {
  const size_t begin = std::exchange(begin_, end);
  return text_.substr(begin, end - begin);
}

std::string_view RegexPieces::next() {
  if (begin_ == text_.size()) return {};
  if (match_end_ > begin_) return take(match_end_);
  // PCRE2 looks for a match that is not empty, at this place or behind it.
  const int found = pcre2_match(split_.code_, reinterpret_cast<PCRE2_SPTR>(text_.data()),
                                text_.size(), begin_, PCRE2_NOTEMPTY, match_, nullptr);
  if (found < 0) return take(text_.size());
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match_);
  match_begin_ = ends[0];
  match_end_ = ends[1];
  return take(match_begin_ > begin_ ? match_begin_ : match_end_);
}

}  // namespace briar

// Splits by any regular expression, for tokenizers whose split is not scanned by hand (split.h).
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace briar {

// Immutable and shared by threads; RegexPieces does the work. PCRE2 with Unicode properties of its
// own version (Debian 12: Unicode 14): a character that is newer counts as unassigned.
class RegexSplit {
 public:
  // An error says what PCRE2 thinks is wrong with the pattern.
  static Result<std::shared_ptr<const RegexSplit>> compile(std::string_view pattern);
  ~RegexSplit();
  RegexSplit(const RegexSplit&) = delete;
  RegexSplit& operator=(const RegexSplit&) = delete;

 private:
  friend class RegexPieces;
  explicit RegexSplit(pcre2_real_code_8* code) : code_(code) {}
  pcre2_real_code_8* code_;
};

// The pieces of one text: each match, and each stretch between matches.
class RegexPieces {
 public:
  RegexPieces(const RegexSplit& split, std::string_view text);
  ~RegexPieces();
  RegexPieces(const RegexPieces&) = delete;
  RegexPieces& operator=(const RegexPieces&) = delete;

  // The next piece, never empty; an empty one at the end. Should PCRE2 give up on a text that was
  // made to exhaust it, the rest is one piece.
  std::string_view next();

 private:
  std::string_view take(size_t end);

  const RegexSplit& split_;
  std::string_view text_;
  size_t begin_ = 0;        // of the next piece
  size_t match_begin_ = 0;  // of the match behind it; [begin, end) is empty if none is known
  size_t match_end_ = 0;
  pcre2_real_match_data_8* match_;
};

}  // namespace briar

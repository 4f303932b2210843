// Streaming detokenizer: bytes or tokens in, valid UTF-8 out, as early as the bytes allow.
#pragma once

#include <string>
#include <string_view>

namespace briar {

// Holds back only the bytes of an unfinished UTF-8 character. The concatenation of all deltas and
// of finish() equals the lossy decoding of the whole: each maximal ill-formed part is one U+FFFD.
class Utf8Stream {
 public:
  // Appends bytes; returns what has become complete (often empty), always valid UTF-8.
  std::string push(std::string_view bytes);
  // The end of the stream: an unfinished character becomes one U+FFFD.
  std::string finish();

 private:
  std::string pending_;  // at most 3 bytes: a valid beginning of one character
};

}  // namespace briar

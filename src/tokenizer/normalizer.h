// What happens to a text before it is split.
#pragma once

#include <string>
#include <string_view>

namespace briar {

struct Normalizer {
  enum class SpacePrefix {
    kNone,
    kFirst,   // a space before a text, but not before what follows a special token
    kAlways,  // a space before every stretch between special tokens
  };

  bool is_nfc = false;
  // SentencePiece: U+2581 stands for a space. Tokens are kept with the space itself, so here it is
  // the text's own U+2581 that becomes one.
  bool has_space_marks = false;
  SpacePrefix prefix = SpacePrefix::kNone;
  bool adds_second_space = true;  // the prefix comes even where the text begins with a space

  bool is_identity() const { return !is_nfc && !has_space_marks && prefix == SpacePrefix::kNone; }

  // The text to split: `text` itself or, if something had to change, what is put into `buffer`.
  // `is_start`: no special token is before it.
  std::string_view apply(std::string_view text, bool is_start, std::string& buffer) const;
};

}  // namespace briar

#include "tokenizer/normalizer.h"

#include "tokenizer/nfc.h"
#include "tokenizer/space_mark.h"

namespace briar {
std::string_view Normalizer::apply(std::string_view text, bool is_start,
                                   std::string& buffer) const {
  if (is_nfc && !is_surely_nfc(text)) text = buffer = to_nfc(text);
  if (has_space_marks && text.find(kSpaceMark) != text.npos) {
    buffer = with_spaces(text);
    text = buffer;
  }
  const bool wants_prefix =
      prefix == SpacePrefix::kAlways || (prefix == SpacePrefix::kFirst && is_start);
  if (!wants_prefix || text.empty() || (!adds_second_space && text.front() == ' ')) return text;
  buffer = " " + std::string(text);
  return buffer;
}

}  // namespace briar

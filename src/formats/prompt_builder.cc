#include "formats/prompt_builder.h"

namespace briar {

void PromptBuilder::add(std::string_view text, bool is_trusted) {
  if (text.empty()) return;
  joined_ += text;
  if (!parts_.empty() && parts_.back().is_trusted == is_trusted) {
    parts_.back().size += text.size();
  } else {
    parts_.push_back({.size = text.size(), .is_trusted = is_trusted});
  }
}

std::vector<int32_t> PromptBuilder::encode(const Tokenizer& tokenizer) const {
  std::vector<TextPart> parts;
  size_t begin = 0;
  for (const Part& part : parts_) {
    parts.push_back({.text = std::string_view(joined_).substr(begin, part.size),
                     .is_trusted = part.is_trusted});
    begin += part.size;
  }
  return tokenizer.encode_parts(parts);
}

}  // namespace briar

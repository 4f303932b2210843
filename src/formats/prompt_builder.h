// Puts a prompt together the way a chat template does: the model's own markup, and text from
// outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace briar {

// All of it is one text to the tokenizer, as the template's output is, so that tokens may cross
// from markup into text; but only markup can become special tokens.
class PromptBuilder {
 public:
  void markup(std::string_view text) { add(text, true); }
  void text(std::string_view text) { add(text, false); }
  std::vector<int32_t> encode(const Tokenizer& tokenizer) const;

 private:
  struct Part {
    size_t size;
    bool is_trusted;
  };
  void add(std::string_view text, bool is_trusted);

  std::string joined_;
  std::vector<Part> parts_;  // in order; neighbours differ in is_trusted
};

}  // namespace briar

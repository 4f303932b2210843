// The two file forms a vocabulary comes in. `source` names the file in errors.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace briar {

// A .tiktoken file: lines of "<base64 bytes> <rank>" with ranks 0, 1, 2, ...
Result<Vocabulary> parse_tiktoken(std::string_view text, std::string_view source);

struct HfTokenizer {
  Vocabulary vocabulary;
  SpecialTokens specials;
};

// A Hugging Face tokenizer.json. Refuses whatever this tokenizer would not do exactly: another
// model than byte-level BPE, another split than o200k's, a normalizer, added tokens that are not
// special, merges that are not those that the ranks imply.
Result<HfTokenizer> parse_tokenizer_json(const std::string& path);

}  // namespace briar

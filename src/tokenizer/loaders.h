// The forms a tokenizer comes in. `source` names the file in errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/splitter.h"
#include "tokenizer/vocabulary.h"

namespace briar {

// All that encoding and decoding go by.
struct TokenizerParts {
  BpeModel bpe;
  AddedTokens added;
  Splitter splitter;
  Normalizer normalizer;
  std::optional<int32_t> bos_id;  // that is to come before every text
};

// A .tiktoken file: lines of "<base64 bytes> <rank>" with ranks 0, 1, 2, ...
Result<Vocabulary> parse_tiktoken(std::string_view text, std::string_view source);

// A Hugging Face tokenizer.json: byte-level BPE, and SentencePiece's with byte fallback. Refuses
// whatever this tokenizer would not do exactly.
Result<TokenizerParts> parse_tokenizer_json(const std::string& path);

Result<TokenizerParts> parse_gguf_vocabulary(const GgufVocabulary& gguf, std::string_view source);

}  // namespace briar

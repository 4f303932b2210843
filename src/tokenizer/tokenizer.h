// Byte-level BPE tokenizer: text to token ids and back.
//
// Text is bytes; it is expected to be UTF-8, and bytes that are not are encoded as they stand: the
// split takes an ill-formed part for a symbol, as U+FFFD is one (split.h).
// Special tokens never come from ordinary text: only encode_with_specials() looks for their
// spellings, and only renderers and `--raw` prompts call it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace briar {

// Immutable: any number of threads may use one.
class Tokenizer {
 public:
  // Reads a model directory: tokenizer.json if it is there, else the one *.tiktoken file (with the
  // o200k_harmony special tokens). No such file is an error.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::string& directory);
  // A Hugging Face tokenizer.json (byte-level BPE with the o200k split).
  static Result<std::shared_ptr<const Tokenizer>> load_tokenizer_json(const std::string& path);
  // `ranks`: the text of a .tiktoken file, lines of "<base64 bytes> <rank>"; `source` names it in
  // errors.
  static Result<std::shared_ptr<const Tokenizer>> from_tiktoken(std::string_view ranks,
                                                                std::string_view source);
  // gpt-oss's o200k_harmony, embedded in the program; built at the first call, thread-safe.
  static std::shared_ptr<const Tokenizer> bundled_o200k_harmony();

  ~Tokenizer();

  // One more than the largest id, special or not.
  int32_t vocab_size() const;

  // Encodes ordinary text; never yields the id of a special token. O(n log n) in the longest piece.
  std::vector<int32_t> encode(std::string_view text) const;
  void encode(std::string_view text, std::vector<int32_t>& out) const;  // appends
  // The same, but spellings of special tokens become their ids (longest first, left to right; each
  // gap is a text of its own, so a look-ahead sees its end as the end of text).
  std::vector<int32_t> encode_with_specials(std::string_view text) const;

  // Bytes of one token (a special token's are its spelling); nullopt for an id that is not a token.
  // Not always valid UTF-8 on its own.
  std::optional<std::string_view> token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  std::optional<int32_t> special_id(std::string_view spelling) const;

  // Concatenated bytes; an id that is not a token is an error that names it.
  Result<std::string> decode_bytes(std::span<const int32_t> ids) const;
  // The same as valid UTF-8: each maximal ill-formed part becomes one U+FFFD (the Unicode
  // standard's "substitution of maximal subparts"). Ids that are not tokens are left out.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace briar

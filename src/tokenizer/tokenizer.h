// BPE tokenizer, byte-level or SentencePiece's: text to token ids and back.
//
// Text is bytes; it is expected to be UTF-8, and bytes that are not are encoded as they stand: the
// split takes an ill-formed part for a symbol, as U+FFFD is one (split.h).
// Special tokens never come from ordinary text: only encode_with_specials() and the trusted parts
// of encode_parts() look for their spellings, and only renderers and `--raw` prompts use these.
// "Special" are here all added tokens of structure, which is more than a file's flag says:
// added_tokens.h.
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

struct GgufVocabulary;
struct TokenizerParts;

// A stretch of a text. Spellings of special tokens count only in trusted ones.
struct TextPart {
  std::string_view text;
  bool is_trusted = false;
};

// Immutable: any number of threads may use one.
class Tokenizer {
 public:
  // Reads a model directory: tokenizer.json if it is there, else the one *.tiktoken file (with the
  // o200k_harmony special tokens). No such file is an error.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::string& directory);
  // A Hugging Face tokenizer.json: byte-level BPE with any split, or BPE with byte fallback.
  static Result<std::shared_ptr<const Tokenizer>> load_tokenizer_json(const std::string& path);
  // `ranks`: the text of a .tiktoken file, lines of "<base64 bytes> <rank>"; `source` names it in
  // errors.
  static Result<std::shared_ptr<const Tokenizer>> from_tiktoken(std::string_view ranks,
                                                                std::string_view source);
  // What a GGUF file says; `source` names the file in errors.
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const GgufVocabulary& vocabulary,
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
  // The parts as one text, so that tokens may cross from one part into the next.
  std::vector<int32_t> encode_parts(std::span<const TextPart> parts) const;

  // The token that the model wants before every text (Llama 3: <|begin_of_text|>). Encoding leaves
  // it out: raw prompts begin with it, chat formats write it where their template does.
  std::optional<int32_t> bos_id() const;

  // Bytes of one token (a special token's are its spelling); nullopt for an id that is not a token.
  // Not always valid UTF-8 on its own.
  std::optional<std::string_view> token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  std::optional<int32_t> special_id(std::string_view spelling) const;

  // Concatenated bytes, without the space that SentencePiece tokenizers put before a text; an id
  // that is not a token is an error that names it.
  Result<std::string> decode_bytes(std::span<const int32_t> ids) const;
  // The same as valid UTF-8: each maximal ill-formed part becomes one U+FFFD (the Unicode
  // standard's "substitution of maximal subparts"). Ids that are not tokens are left out.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  struct Impl;
  explicit Tokenizer(TokenizerParts parts);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace briar

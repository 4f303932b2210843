#include "tokenizer/gguf_vocabulary.h"

#include <algorithm>

#include "tokenizer/bpe_builder.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/loaders.h"
#include "tokenizer/space_mark.h"

namespace briar {
namespace {

// What tokenizer.ggml.pre stands for.
struct PreTokenizer {
  std::string_view name;
  std::string_view patterns[2];  // one within the pieces of the other
  bool takes_tokens_whole = false;
  bool is_nfc = false;  // as in the models' own tokenizer.json
  bool adds_bos = false;
};

// Mistral's Tekken: o200k without contractions, digits one by one.
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "gpt-2", .patterns = {kGpt2Pattern}},
    {.name = "smollm", .patterns = {R"(\p{N})", kGpt2Pattern}},
    {.name = "starcoder", .patterns = {R"(\p{N})", kGpt2Pattern}},
    {.name = "llama-bpe",
     .patterns = {kLlama3Pattern},
     .takes_tokens_whole = true,
     .adds_bos = true},
    {.name = "llama3", .patterns = {kLlama3Pattern}, .takes_tokens_whole = true, .adds_bos = true},
    {.name = "qwen2", .patterns = {kQwen2Pattern}, .is_nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2Pattern}, .is_nfc = true},
    {.name = "tekken", .patterns = {kTekkenPattern}, .takes_tokens_whole = true, .adds_bos = true},
    {.name = "gpt-4o", .patterns = {kO200kPattern}, .takes_tokens_whole = true},
};

class Reader {
 public:
  Reader(const GgufVocabulary& gguf, std::string_view source) : gguf_(gguf), source_(source) {}

  TokenizerParts read() {
    check_sizes();
    read_tokens();
    if (gguf_.model == "gpt2") {
      use_pre_tokenizer();
      read_merges();
    } else {
      use_sentencepiece();
    }
    read_bos();
    parts_.added = AddedTokens(std::move(added_));
    auto bpe = build_bpe(std::move(lists_), source_);
    if (!bpe) throw UserError(bpe.error());
    parts_.bpe = std::move(*bpe);
    return std::move(parts_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw_user_error("{}: {}", source_, fmt::format(text, std::forward<Args>(args)...));
  }

  bool is_byte_level() const { return gguf_.model == "gpt2"; }

  void check_sizes() const {
    if (gguf_.model != "gpt2" && gguf_.model != "llama") {
      fail("tokenizer.ggml.model is \"{}\", known: gpt2, llama", gguf_.model);
    }
    const size_t num_tokens = gguf_.tokens.size();
    if (num_tokens == 0 || num_tokens > static_cast<size_t>(kMaxVocabularySize)) {
      fail("{} tokens, expected 1 to {}", num_tokens, kMaxVocabularySize);
    }
    if (!gguf_.token_types.empty() && gguf_.token_types.size() != num_tokens) {
      fail("{} token types for {} tokens", gguf_.token_types.size(), num_tokens);
    }
    if (!is_byte_level() && gguf_.scores.size() != num_tokens) {
      fail("{} scores for {} tokens", gguf_.scores.size(), num_tokens);
    }
  }

  int32_t type_of(size_t id) const {
    return gguf_.token_types.empty() ? GgufVocabulary::kNormal : gguf_.token_types[id];
  }

  void read_tokens() {
    lists_.tokens.resize(gguf_.tokens.size());
    lists_.is_hidden.resize(gguf_.tokens.size(), 0);
    std::vector<std::string_view> spellings;
    for (size_t id = 0; id < gguf_.tokens.size(); ++id) {
      const std::string& text = gguf_.tokens[id];
      const int32_t type = type_of(id);
      const bool is_ordinary = type == GgufVocabulary::kNormal || type == GgufVocabulary::kByte ||
                               type == GgufVocabulary::kUnused;
      if (text.empty()) {
        if (type != GgufVocabulary::kUnused) fail("token {} is empty", id);
      } else if (is_ordinary) {
        read_ordinary(id, text, type);
      } else {
        spellings.push_back(text);
        added_.push_back({.spelling = is_byte_level() ? text : with_spaces(text),
                          .id = static_cast<int32_t>(id),
                          .is_special = type != GgufVocabulary::kUserDefined});
      }
    }
    std::sort(spellings.begin(), spellings.end());
    const auto twice = std::adjacent_find(spellings.begin(), spellings.end());
    if (twice != spellings.end()) fail("special token \"{}\" is there twice", *twice);
  }

  void read_ordinary(size_t id, const std::string& text, int32_t type) {
    std::string& bytes = lists_.tokens[id];
    if (type == GgufVocabulary::kByte) {
      const auto byte = byte_token(text);
      if (!byte) fail("token {} \"{}\" has the type of a byte", id, text);
      bytes = static_cast<char>(*byte);
      lists_.byte_fallback_ids[*byte] = static_cast<int32_t>(id);
      lists_.is_hidden[id] = 1;
    } else if (type == GgufVocabulary::kUnused) {
      bytes = text;
      lists_.is_hidden[id] = 1;
    } else if (!is_byte_level()) {
      bytes = with_spaces(text);
    } else if (!alphabet_.decode(text, bytes)) {
      fail("token {} \"{}\" is not spelled in the byte-level alphabet", id, text);
    }
  }

  void use_pre_tokenizer() {
    for (const PreTokenizer& pre : kPreTokenizers) {
      if (pre.name != gguf_.pre) continue;
      for (const std::string_view pattern : pre.patterns) {
        if (pattern.empty()) continue;
        const auto status = parts_.splitter.add_regex(pattern);
        CHECK(status.ok(), "the pattern of {}: {}", pre.name, status.error().message);
      }
      lists_.takes_tokens_whole = pre.takes_tokens_whole;
      parts_.normalizer.is_nfc = pre.is_nfc;
      adds_bos_ = pre.adds_bos;
      return;
    }
    std::string known;
    for (const PreTokenizer& pre : kPreTokenizers) known += " " + std::string(pre.name);
    fail("tokenizer.ggml.pre is \"{}\", known:{}", gguf_.pre, known);
  }

  void use_sentencepiece() {
    const bool has_prefix = gguf_.adds_space_prefix.value_or(true);
    parts_.normalizer.has_space_marks = true;
    if (has_prefix) parts_.normalizer.prefix = Normalizer::SpacePrefix::kAlways;
    adds_bos_ = true;
    lists_.has_character_symbols = true;
    lists_.scores = gguf_.scores;
    const auto is_unknown = [](int32_t type) { return type == GgufVocabulary::kUnknown; };
    const auto unknown =
        std::find_if(gguf_.token_types.begin(), gguf_.token_types.end(), is_unknown);
    if (unknown != gguf_.token_types.end()) {
      lists_.unknown_id = static_cast<int32_t>(unknown - gguf_.token_types.begin());
    }
    if (!has_token_across_words(lists_.tokens)) parts_.splitter.add(word_piece_end);
  }

  void read_merges() {
    if (gguf_.merges.empty()) fail("there are no tokenizer.ggml.merges");
    std::string left, right;
    for (const std::string& merge : gguf_.merges) {
      const std::string_view text = merge;
      const size_t space = text.find(' ');
      if (space == text.npos || space == 0 || space + 1 == text.size() ||
          !alphabet_.decode(text.substr(0, space), left) ||
          !alphabet_.decode(text.substr(space + 1), right)) {
        fail("merge {} is not a pair of tokens", lists_.merges.size());
      }
      lists_.merges.emplace_back(left, right);
    }
  }

  void read_bos() {
    if (!gguf_.adds_bos.value_or(adds_bos_) || !gguf_.bos_id) return;
    const int32_t id = *gguf_.bos_id;
    if (id < 0 || id >= static_cast<int32_t>(gguf_.tokens.size())) {
      fail("tokenizer.ggml.bos_token_id is {} of {} tokens", id, gguf_.tokens.size());
    }
    parts_.bos_id = id;
  }

  const GgufVocabulary& gguf_;
  const std::string source_;
  const ByteAlphabet alphabet_;
  BpeLists lists_;
  std::vector<AddedToken> added_;
  TokenizerParts parts_;
  bool adds_bos_ = false;
};

}  // namespace

Result<TokenizerParts> parse_gguf_vocabulary(const GgufVocabulary& gguf, std::string_view source) {
  try {
    return Reader(gguf, source).read();
  } catch (const UserError& e) {
    return e.error;
  }
}

}  // namespace briar

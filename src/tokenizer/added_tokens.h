// Tokens that stand beside the BPE vocabulary and are looked for before the text is split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/special_tokens.h"

namespace briar {

// One of `added_tokens` in a tokenizer.json, with its flags.
struct AddedToken {
  std::string spelling;
  int32_t id = 0;
  bool is_special = true;
  bool strips_left = false;     // takes the white space before it
  bool strips_right = false;    // takes the white space behind it
  bool is_single_word = false;  // not where a letter, digit or _ stands next to it
  bool is_normalized = false;   // looked for after normalization
};

// Structure and text. Structure is never made from ordinary text: all special tokens, and of the
// others those that are spelled like markers, <...> or [...], because that is what chat formats use
// them for (Qwen's <tool_call> and <think> are not flagged special). What is left, such as runs of
// spaces, is text with tokens of its own.
class AddedTokens {
 public:
  // Where a token stands, with the white space that it takes.
  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };
  enum class Kinds {
    kText,            // that is not normalized
    kNormalizedText,  //
    kAll,             // structure, and text that is not normalized
  };

  AddedTokens() = default;
  // No spelling is empty or there twice.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  explicit AddedTokens(SpecialTokens structure);

  const SpecialTokens& structure() const { return structure_; }
  std::optional<std::string_view> spelling_of(int32_t id) const;
  int32_t end_id() const;
  bool has(Kinds kinds) const { return !set_of(kinds).empty(); }

  // The first token of these kinds that stands wholly within [from, end) of the text; the longest
  // of those that start there. White space is taken within [from, text.size()).
  std::optional<Match> find(std::string_view text, size_t from, size_t end, Kinds kinds) const;

 private:
  const SpecialTokens& set_of(Kinds kinds) const;

  SpecialTokens structure_, text_, normalized_text_;
  SpecialTokens all_;                                // empty if there is no text_
  std::unordered_map<int32_t, AddedToken> flagged_;  // those with flags that find() must honour
};

}  // namespace briar

// Special tokens: their spellings and where these stand in a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace briar {

class SpecialTokens {
 public:
  struct Match {
    size_t begin;
    size_t size;
    int32_t id;
  };

  SpecialTokens() = default;
  // Pairs of spelling (not empty) and id. An id may have several spellings, the first one is its
  // canonical; a spelling must not occur twice.
  explicit SpecialTokens(std::vector<std::pair<std::string, int32_t>> tokens);

  std::optional<int32_t> id_of(std::string_view spelling) const;
  std::optional<std::string_view> spelling_of(int32_t id) const;
  bool empty() const { return by_spelling_.empty(); }
  // One more than the largest id; 0 if there are none.
  int32_t end_id() const { return by_id_.empty() ? 0 : by_id_.back().first + 1; }

  // The first special token at or after `from`, the longest of those that start there.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  std::vector<std::pair<std::string, int32_t>> by_spelling_;  // sorted
  std::vector<std::pair<int32_t, std::string>> by_id_;        // sorted, canonical spellings
  std::vector<size_t> sizes_;                                 // of spellings, descending, distinct
  std::string common_prefix_;                                 // of all spellings
  std::array<bool, 256> is_first_byte_{};                     // of some spelling
};

// Number of ordinary tokens of o200k_base; the special tokens of o200k_harmony follow them.
inline constexpr int32_t kO200kNumOrdinary = 199998;
inline constexpr int32_t kO200kHarmonyVocabSize = 201088;

// The special tokens of o200k_harmony as tiktoken defines them: every id from kO200kNumOrdinary up
// to kO200kHarmonyVocabSize; <|endofprompt|> and <|reserved_200018|> are both 200018.
SpecialTokens o200k_harmony_special_tokens();

}  // namespace briar

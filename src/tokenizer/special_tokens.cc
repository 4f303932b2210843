#include "tokenizer/special_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace briar {
namespace {

std::string common_prefix_of(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  const auto end = std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(size), b.begin());
  return {a.begin(), end.first};
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<std::pair<std::string, int32_t>> tokens) {
  for (const auto& [spelling, id] : tokens) {
    CHECK(!spelling.empty(), "special token {} has an empty spelling", id);
    by_id_.emplace_back(id, spelling);
    sizes_.push_back(spelling.size());
    is_first_byte_[static_cast<uint8_t>(spelling[0])] = true;
  }
  const auto id_less = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto id_equal = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::stable_sort(by_id_.begin(), by_id_.end(),
                   id_less);  // stable: the first spelling stays first
  by_id_.erase(std::unique(by_id_.begin(), by_id_.end(), id_equal), by_id_.end());
  std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  by_spelling_ = std::move(tokens);
  std::sort(by_spelling_.begin(), by_spelling_.end());
  if (by_spelling_.empty()) return;
  const auto twice = std::adjacent_find(by_spelling_.begin(), by_spelling_.end(), id_equal);
  CHECK(twice == by_spelling_.end(), "special token {} is there twice", twice->first);
  // Sorted, so what the first and the last have in common all have in common.
  common_prefix_ = common_prefix_of(by_spelling_.front().first, by_spelling_.back().first);
}

std::optional<int32_t> SpecialTokens::id_of(std::string_view spelling) const {
  const auto it = std::lower_bound(by_spelling_.begin(), by_spelling_.end(), spelling,
                                   [](const auto& a, std::string_view b) { return a.first < b; });
  if (it == by_spelling_.end() || it->first != spelling) return std::nullopt;
  return it->second;
}

std::optional<std::string_view> SpecialTokens::spelling_of(int32_t id) const {
  const auto it = std::lower_bound(by_id_.begin(), by_id_.end(), id,
                                   [](const auto& a, int32_t b) { return a.first < b; });
  if (it == by_id_.end() || it->first != id) return std::nullopt;
  return it->second;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, size_t from) const {
  if (by_spelling_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    begin = text.find(common_prefix_, begin);
    if (begin >= text.size()) return std::nullopt;
    if (!is_first_byte_[static_cast<uint8_t>(text[begin])]) continue;
    for (const size_t size : sizes_) {
      if (size > text.size() - begin) continue;
      const auto id = id_of(text.substr(begin, size));
      if (id) return Match{begin, size, *id};
    }
  }
  return std::nullopt;
}

SpecialTokens o200k_harmony_special_tokens() {
  std::vector<std::pair<std::string, int32_t>> tokens = {
      {"<|startoftext|>", 199998}, {"<|endoftext|>", 199999}, {"<|return|>", 200002},
      {"<|constrain|>", 200003},   {"<|channel|>", 200005},   {"<|start|>", 200006},
      {"<|end|>", 200007},         {"<|message|>", 200008},   {"<|call|>", 200012},
      {"<|endofprompt|>", 200018}};
  const auto named_end = tokens.end() - 1;  // without <|endofprompt|>, whose id has both spellings
  std::vector<int32_t> named;
  for (auto it = tokens.begin(); it != named_end; ++it) named.push_back(it->second);
  for (int32_t id = kO200kNumOrdinary; id < kO200kHarmonyVocabSize; ++id) {
    if (std::find(named.begin(), named.end(), id) != named.end()) continue;
    tokens.emplace_back(fmt::format("<|reserved_{}|>", id), id);
  }
  return SpecialTokens(std::move(tokens));
}

}  // namespace briar

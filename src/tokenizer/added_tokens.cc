#include "tokenizer/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

bool is_spelled_like_marker(std::string_view text) {
  return text.size() > 2 && ((text.front() == '<' && text.back() == '>') ||
                             (text.front() == '[' && text.back() == ']'));
}

CharClass class_at(std::string_view text, size_t i) {
  return char_class(decode_utf8_char(text.data() + i, text.data() + text.size()).code_point);
}

bool is_space_at(std::string_view text, size_t i) {
  const CharClass c = class_at(text, i);
  return c == CharClass::kSpace || c == CharClass::kNewline;
}

// Unicode's definition of \w: letters, marks, decimal and letter numbers, connectors, joiners.
bool is_word_at(std::string_view text, size_t i) {
  const uint32_t c = decode_utf8_char(text.data() + i, text.data() + text.size()).code_point;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return c == 0x200C || c == 0x200D;
  }
}

// Where the character before `i` begins.
size_t previous_char(std::string_view text, size_t i) {
  do --i;
  while (i > 0 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80);
  return i;
}

size_t next_char(std::string_view text, size_t i) {
  return i + decode_utf8_char(text.data() + i, text.data() + text.size()).length;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  std::vector<std::pair<std::string, int32_t>> structure, text, normalized_text, all;
  for (AddedToken& token : tokens) {
    const bool is_structure = token.is_special || is_spelled_like_marker(token.spelling);
    auto& list = is_structure ? structure : token.is_normalized ? normalized_text : text;
    list.emplace_back(token.spelling, token.id);
    if (is_structure || !token.is_normalized) all.emplace_back(token.spelling, token.id);
    if (token.strips_left || token.strips_right || token.is_single_word) {
      const int32_t id = token.id;
      flagged_.emplace(id, std::move(token));
    }
  }
  structure_ = SpecialTokens(std::move(structure));
  normalized_text_ = SpecialTokens(std::move(normalized_text));
  if (!text.empty()) all_ = SpecialTokens(std::move(all));
  text_ = SpecialTokens(std::move(text));
}

AddedTokens::AddedTokens(SpecialTokens structure) : structure_(std::move(structure)) {}

std::optional<std::string_view> AddedTokens::spelling_of(int32_t id) const {
  for (const SpecialTokens* set : {&structure_, &text_, &normalized_text_}) {
    if (const auto spelling = set->spelling_of(id)) return spelling;
  }
  return std::nullopt;
}

int32_t AddedTokens::end_id() const {
  return std::max({structure_.end_id(), text_.end_id(), normalized_text_.end_id()});
}

const SpecialTokens& AddedTokens::set_of(Kinds kinds) const {
  switch (kinds) {
    case Kinds::kText: return text_;
    case Kinds::kNormalizedText: return normalized_text_;
    case Kinds::kAll: break;
  }
  return all_.empty() ? structure_ : all_;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from, size_t end,
                                                    Kinds kinds) const {
  const SpecialTokens& set = set_of(kinds);
  for (size_t at = from; const auto found = set.find(text.substr(0, end), at);) {
    Match match{.begin = found->begin, .end = found->begin + found->size, .id = found->id};
    const auto flags = flagged_.find(match.id);
    if (flags == flagged_.end()) return match;
    const bool is_inside_word =
        (match.begin > 0 && is_word_at(text, previous_char(text, match.begin))) ||
        (match.end < text.size() && is_word_at(text, match.end));
    if (flags->second.is_single_word && is_inside_word) {
      at = match.end;
      continue;
    }
    if (flags->second.strips_left) {
      while (match.begin > from && is_space_at(text, previous_char(text, match.begin))) {
        match.begin = previous_char(text, match.begin);
      }
    }
    if (flags->second.strips_right) {
      while (match.end < text.size() && is_space_at(text, match.end)) {
        match.end = next_char(text, match.end);
      }
    }
    return match;
  }
  return std::nullopt;
}

}  // namespace briar

#include "grammar/vocabulary_index.h"

#include <algorithm>

namespace briar {

VocabularyIndex::VocabularyIndex(const Tokenizer& tokenizer)
    : vocab_size_(tokenizer.vocab_size()),
      ordinary_((static_cast<size_t>(vocab_size_) + 31) / 32),
      white_space_(ordinary_.size()) {
  tokens_.reserve(static_cast<size_t>(vocab_size_));
  for (int32_t id = 0; id < vocab_size_; ++id) {
    const auto bytes = tokenizer.token_bytes(id);
    if (!bytes || bytes->empty() || tokenizer.is_special(id)) continue;
    tokens_.push_back({*bytes, id});
    set_bit(ordinary_, id);
    if (bytes->find_first_not_of(" \t\r\n") == bytes->npos) set_bit(white_space_, id);
  }
  std::sort(tokens_.begin(), tokens_.end(),
            [](const Token& a, const Token& b) { return a.bytes < b.bytes; });
}

VocabularyIndex::Range VocabularyIndex::narrow(Range range, uint8_t byte) const {
  // -1 for a token that ends before this byte: it sorts first.
  const auto byte_of = [&](const Token& token) {
    return token.bytes.size() == range.depth ? -1
                                             : int{static_cast<uint8_t>(token.bytes[range.depth])};
  };
  const auto first = tokens_.begin();
  const auto begin = std::partition_point(
      first + static_cast<ptrdiff_t>(range.begin), first + static_cast<ptrdiff_t>(range.end),
      [&](const Token& token) { return byte_of(token) < byte; });
  const auto end = std::partition_point(begin, first + static_cast<ptrdiff_t>(range.end),
                                        [&](const Token& token) { return byte_of(token) <= byte; });
  return {static_cast<size_t>(begin - first), static_cast<size_t>(end - first), range.depth + 1};
}

void VocabularyIndex::add_exact(Range range, std::span<uint32_t> mask) const {
  for (size_t i = range.begin; i < range.end && tokens_[i].bytes.size() == range.depth; ++i) {
    set_bit(mask, tokens_[i].id);
  }
}

}  // namespace briar

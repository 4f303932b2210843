// A tokenizer's ordinary tokens in the order of their bytes, and masks over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace briar {

inline void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
}
inline bool has_bit(std::span<const uint32_t> mask, int32_t id) {
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
}

// Keeps views of the tokenizer's bytes: it must outlive the index.
class VocabularyIndex {
 public:
  explicit VocabularyIndex(const Tokenizer& tokenizer);

  int32_t vocab_size() const { return vocab_size_; }
  size_t num_words() const { return ordinary_.size(); }  // of a mask over the vocabulary
  // Every token that is neither special nor missing.
  std::span<const uint32_t> ordinary() const { return ordinary_; }
  // Those of them that consist of JSON's white space alone.
  std::span<const uint32_t> white_space() const { return white_space_; }

  // Consecutive tokens in byte order, all of which begin with the same `depth` bytes.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
    size_t depth = 0;
    bool is_empty() const { return begin == end; }
  };
  Range all() const { return {0, tokens_.size(), 0}; }
  // Those that go on with `byte`.
  Range narrow(Range range, uint8_t byte) const;
  // Those that end there: at the front of the range.
  void add_exact(Range range, std::span<uint32_t> mask) const;

 private:
  struct Token {
    std::string_view bytes;
    int32_t id;
  };

  int32_t vocab_size_;
  std::vector<Token> tokens_;  // sorted by bytes
  std::vector<uint32_t> ordinary_;
  std::vector<uint32_t> white_space_;
};

}  // namespace briar

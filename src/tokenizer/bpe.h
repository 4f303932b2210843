// Byte-pair encoding of the pieces of one text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/short_key.h"
#include "tokenizer/vocabulary.h"

namespace briar {

// A piece that is a token becomes it. Of any other the bytes are joined pair by pair, always the
// adjacent pair whose concatenation has the lowest rank, the leftmost on ties, in O(n log n).
class PieceEncoder {
 public:
  // For the pieces of a text that ends at `text_end` and has `text_size` bytes.
  PieceEncoder(const Vocabulary& vocabulary, const char* text_end, size_t text_size);

  // Appends the ids of `piece`, which is not empty.
  void encode(std::string_view piece, std::vector<int32_t>& out);

 private:
  // What a short piece became. Words that are not tokens come again and again in a long text: this
  // makes prose and code a fifth faster, text without such words no slower. Direct-mapped; only for
  // long texts, because it has to be cleared first.
  struct Cached {
    static constexpr uint32_t kMaxIds = 11;  // one cache line
    ShortKey key;
    uint32_t num_ids = 0;
    int32_t ids[kMaxIds];
  };

  void merge(std::string_view piece, std::vector<int32_t>& out) const;
  void encode_cached(std::string_view piece, ShortKey key, uint64_t hash,
                     std::vector<int32_t>& out);

  const Vocabulary& vocabulary_;
  const char* text_end_;
  std::vector<Cached> cache_;  // empty or kCacheSlots
};

}  // namespace briar

// Byte-pair encoding of the pieces of one text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/short_key.h"
#include "tokenizer/vocabulary.h"

namespace briar {

// A vocabulary, and which of its tokens join to which.
struct BpeModel {
  Vocabulary vocabulary;
  // Not set: any two whose concatenation is a token, the one of the lowest id first. That is the
  // BPE of tiktoken, and faster; it needs a token for every byte.
  std::optional<MergeTable> merges = {};
  // With `merges` only. Pieces begin as bytes (byte-level BPE) or as characters (SentencePiece). A
  // character without a token becomes the tokens of its bytes; if these are missing, or for a byte,
  // the unknown token; and nothing if there is none.
  bool has_character_symbols = false;
  std::array<int32_t, 256> byte_fallback_ids = no_byte_ids();
  int32_t unknown_id = kNoToken;
  bool fuses_unknown = true;  // one unknown token for a run of them

  static constexpr std::array<int32_t, 256> no_byte_ids() {
    std::array<int32_t, 256> ids{};
    ids.fill(kNoToken);
    return ids;
  }
};

// A piece that is a token (and that find() shows) becomes it. Of any other the symbols are joined
// pair by pair, always the adjacent pair of the lowest rank, the leftmost on ties, in O(n log n).
class PieceEncoder {
 public:
  // For the pieces of a text that ends at `text_end` and has `text_size` bytes.
  PieceEncoder(const BpeModel& model, const char* text_end, size_t text_size);

  // Appends the ids of `piece`, which is not empty.
  void encode(std::string_view piece, std::vector<int32_t>& out);
  // The same, always by merging.
  void merge(std::string_view piece, std::vector<int32_t>& out);

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

  void append_symbols(std::string_view piece);
  void append_fallback(std::string_view character);
  void append_unknown();
  void encode_cached(std::string_view piece, ShortKey key, uint64_t hash,
                     std::vector<int32_t>& out);

  const BpeModel& model_;
  const Vocabulary& vocabulary_;
  const char* text_end_;
  std::vector<Cached> cache_;     // empty or kCacheSlots
  std::vector<int32_t> symbols_;  // of the piece at hand
};

}  // namespace briar

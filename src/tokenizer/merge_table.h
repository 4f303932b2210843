// The joins of a BPE whose merges are listed pair by pair.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace briar {

// From a pair of token ids to the rank of their join (lowest first) and the id that it makes.
class MergeTable {
 public:
  explicit MergeTable(size_t max_merges);

  // Ranks count from 0 and come in order; several pairs may share one if they make the same token.
  // False if the pair is there already.
  bool add(int32_t left, int32_t right, int32_t rank, int32_t id);

  // kNoToken if the two do not join. Ids may be kNoToken.
  int32_t rank(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].rank;
      if (slots_[i].key == kEmpty) return kNoToken;
    }
  }
  int32_t id_of_rank(int32_t rank) const { return ids_[static_cast<size_t>(rank)]; }
  int32_t num_ranks() const { return static_cast<int32_t>(ids_.size()); }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // the key of no pair that add() takes
  struct Slot {
    uint64_t key = kEmpty;
    int32_t rank = kNoToken;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return static_cast<size_t>(hash_of({key, 0}) >> shift_); }

  std::vector<Slot> slots_;  // open addressing, a power of two of them, at most half full
  int shift_ = 0;
  std::vector<int32_t> ids_;  // by rank
};

}  // namespace briar

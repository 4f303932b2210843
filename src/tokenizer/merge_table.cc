#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace briar {

MergeTable::MergeTable(size_t max_merges) {
  slots_.resize(std::bit_ceil(std::max<size_t>(2 * max_merges, 2)));
  shift_ = 64 - std::countr_zero(slots_.size());
}

bool MergeTable::add(int32_t left, int32_t right, int32_t rank, int32_t id) {
  CHECK(left >= 0 && right >= 0, "the pair {} and {} has no ids", left, right);
  CHECK(rank == num_ranks() || (rank == num_ranks() - 1 && ids_.back() == id),
        "rank {} after {} ranks", rank, num_ranks());
  const uint64_t key = key_of(left, right);
  size_t i = slot_of(key);
  for (; slots_[i].key != kEmpty; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].key == key) return false;
  }
  slots_[i] = {.key = key, .rank = rank};
  if (rank == num_ranks()) ids_.push_back(id);
  return true;
}

}  // namespace briar

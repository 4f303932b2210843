// The pages of one sequence in one kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvcache/page_pool.h"

namespace briar {

// A range of the sequence's page table: page_ids()[i] holds the tokens from (first_page() + i) *
// page_size on. Pages in front of the range have left the window. Pages may be shared with other
// sequences; only the pages behind the last published one are written to.
class SequencePages {
 public:
  // window == 0: keeps everything.
  SequencePages(int32_t page_size, int32_t window) : page_size_(page_size), window_(window) {}

  // Pages that `num_tokens` tokens need beyond those held.
  int32_t pages_missing(int64_t num_tokens) const;
  // Takes pages until `num_tokens` tokens have a place; takes none and returns false if too few are
  // to be had.
  [[nodiscard]] bool reserve(PagePool& pool, int64_t num_tokens);

  // The first page, as an index into the page table, that a query at position `num_tokens` can see.
  int64_t first_visible_page(int64_t num_tokens) const;
  // How many of the first `num_pages` pages a new sequence could take over: the largest n for which
  // pool holds all that a query right behind page n - 1 can see. keys[i] names page i.
  int64_t longest_cached(const PagePool& pool, std::span<const PageKey> keys) const;
  // Takes them over. The sequence must hold nothing, and longest_cached(keys) must have been
  // keys.size().
  void adopt(PagePool& pool, std::span<const PageKey> keys);

  // Names the pages from index `begin` on whose keys are known.
  void publish(PagePool& pool, int64_t begin, std::span<const PageKey> keys) const;
  // Gives back the pages that no query from position `num_confirmed` on can see: only confirmed
  // tokens push pages out.
  void drop_out_of_window(PagePool& pool, int64_t num_confirmed);
  // Gives everything back, the last page first: of a cached prefix, the end is evicted before the
  // beginning.
  void release_all(PagePool& pool);

  std::span<const int32_t> page_ids() const { return page_ids_; }
  int32_t first_page() const { return first_page_; }
  int32_t end_page() const { return first_page_ + static_cast<int32_t>(page_ids_.size()); }

  // Most pages that one sequence can hold at once while running chunks of up to `chunk` tokens.
  static int64_t max_pages(int32_t page_size, int32_t window, int64_t max_tokens, int64_t chunk);

 private:
  int32_t page_size_;
  int32_t window_;
  int32_t first_page_ = 0;
  std::vector<int32_t> page_ids_;
};

}  // namespace briar

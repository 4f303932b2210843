// KV pages of one kind: which are free, and which sequence holds which.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace briar {

// Hands out page ids [0, num_pages). Host only; one thread at a time.
class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  // The most recently freed page first: its memory is the likeliest to be in a cache. nullopt =
  // none is free.
  std::optional<int32_t> allocate();
  void free(int32_t page_id);

  int32_t num_pages() const { return static_cast<int32_t>(is_used_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  bool is_used(int32_t page_id) const { return is_used_[static_cast<size_t>(page_id)]; }
  // Every page is either free, once, or used.
  void check_invariants() const;

 private:
  std::vector<int32_t> free_;
  std::vector<bool> is_used_;
};

// The pages of one sequence in one kind: a range of its page table. Pages in front of the range
// have left the window.
class SequencePages {
 public:
  // window == 0: keeps everything.
  SequencePages(int32_t page_size, int32_t window) : page_size_(page_size), window_(window) {}

  // Pages missing for `num_tokens` tokens.
  int32_t pages_missing(int64_t num_tokens) const;
  // Takes pages until `num_tokens` tokens have a place; takes none and returns false if too few are
  // free.
  [[nodiscard]] bool reserve(PagePool& pool, int64_t num_tokens);
  // Gives back the pages that no token from position `num_confirmed` on can see: only confirmed
  // tokens push pages out.
  void drop_out_of_window(PagePool& pool, int64_t num_confirmed);
  void release_all(PagePool& pool);

  std::span<const int32_t> page_ids() const { return page_ids_; }
  // Index of page_ids()[0] in the sequence's page table.
  int32_t first_page() const { return first_page_; }

  // Most pages that one sequence of this kind can hold at once while running chunks of up to
  // `chunk` tokens.
  static int64_t max_pages(int32_t page_size, int32_t window, int64_t max_tokens, int64_t chunk);

 private:
  int32_t page_size_;
  int32_t window_;
  int32_t first_page_ = 0;
  std::vector<int32_t> page_ids_;
};

}  // namespace briar

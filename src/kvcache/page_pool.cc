#include "kvcache/page_pool.h"

#include <algorithm>

#include "base/check.h"

namespace briar {

PagePool::PagePool(int32_t num_pages) : is_used_(static_cast<size_t>(num_pages), false) {
  CHECK_GE(num_pages, 0, "pages of a pool");
  free_.reserve(is_used_.size());
  for (int32_t id = num_pages - 1; id >= 0; --id) free_.push_back(id);
}

std::optional<int32_t> PagePool::allocate() {
  if (free_.empty()) return std::nullopt;
  const int32_t id = free_.back();
  free_.pop_back();
  is_used_[static_cast<size_t>(id)] = true;
  return id;
}

void PagePool::free(int32_t page_id) {
  CHECK(page_id >= 0 && page_id < num_pages(), "page {} of {}", page_id, num_pages());
  CHECK(is_used(page_id), "page {} is freed twice", page_id);
  is_used_[static_cast<size_t>(page_id)] = false;
  free_.push_back(page_id);
}

void PagePool::check_invariants() const {
  std::vector<bool> seen(is_used_.size(), false);
  for (const int32_t id : free_) {
    CHECK(!seen[static_cast<size_t>(id)], "page {} is on the free list twice", id);
    CHECK(!is_used(id), "page {} is free and used", id);
    seen[static_cast<size_t>(id)] = true;
  }
  const auto used = static_cast<int32_t>(std::count(is_used_.begin(), is_used_.end(), true));
  CHECK_EQ(used + num_free(), num_pages(), "used plus free pages");
}

int32_t SequencePages::pages_missing(int64_t num_tokens) const {
  const int64_t end = first_page_ + static_cast<int64_t>(page_ids_.size());
  const int64_t needed = (num_tokens + page_size_ - 1) / page_size_;
  return static_cast<int32_t>(std::max<int64_t>(0, needed - end));
}

bool SequencePages::reserve(PagePool& pool, int64_t num_tokens) {
  const int32_t missing = pages_missing(num_tokens);
  if (missing > pool.num_free()) return false;
  for (int32_t i = 0; i < missing; ++i) page_ids_.push_back(*pool.allocate());
  return true;
}

void SequencePages::drop_out_of_window(PagePool& pool, int64_t num_confirmed) {
  if (window_ == 0) return;
  // The next query stands at position num_confirmed or later and sees back to num_confirmed -
  // window + 1.
  const int64_t first_visible = std::max<int64_t>(0, num_confirmed - window_ + 1);
  const int64_t drop = std::min<int64_t>(first_visible / page_size_ - first_page_,
                                         static_cast<int64_t>(page_ids_.size()));
  if (drop <= 0) return;
  for (int64_t i = 0; i < drop; ++i) pool.free(page_ids_[static_cast<size_t>(i)]);
  page_ids_.erase(page_ids_.begin(), page_ids_.begin() + drop);
  first_page_ += static_cast<int32_t>(drop);
}

void SequencePages::release_all(PagePool& pool) {
  for (const int32_t id : page_ids_) pool.free(id);
  page_ids_.clear();
  first_page_ = 0;
}

int64_t SequencePages::max_pages(int32_t page_size, int32_t window, int64_t max_tokens,
                                 int64_t chunk) {
  // A window may begin and end inside a page: one page of slack at either end.
  const int64_t tokens = window == 0 ? max_tokens : std::min(max_tokens, window + chunk);
  return (tokens + page_size - 1) / page_size + (window == 0 ? 0 : 1);
}

}  // namespace briar

#include "kvcache/sequence_pages.h"

#include <algorithm>

#include "base/check.h"

namespace briar {

int32_t SequencePages::pages_missing(int64_t num_tokens) const {
  const int64_t end = first_page_ + static_cast<int64_t>(page_ids_.size());
  const int64_t needed = (num_tokens + page_size_ - 1) / page_size_;
  return static_cast<int32_t>(std::max<int64_t>(0, needed - end));
}

bool SequencePages::reserve(PagePool& pool, int64_t num_tokens) {
  const int32_t missing = pages_missing(num_tokens);
  if (missing > pool.num_available()) return false;
  for (int32_t i = 0; i < missing; ++i) page_ids_.push_back(*pool.allocate());
  return true;
}

int64_t SequencePages::first_visible_page(int64_t num_tokens) const {
  if (window_ == 0) return 0;
  return std::max<int64_t>(0, num_tokens - window_ + 1) / page_size_;
}

int64_t SequencePages::longest_cached(const PagePool& pool, std::span<const PageKey> keys) const {
  // run = how many pages in a row, ending with page i, are cached; a prefix of i + 1 pages will do
  // if the run reaches back to the first page that its next query sees.
  int64_t best = 0, run = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(keys.size()); ++i) {
    run = pool.find(keys[static_cast<size_t>(i)]) ? run + 1 : 0;
    if (run == 0 && window_ == 0) break;
    if (i + 1 - run <= first_visible_page((i + 1) * page_size_)) best = i + 1;
  }
  return best;
}

void SequencePages::adopt(PagePool& pool, std::span<const PageKey> keys) {
  CHECK(page_ids_.empty() && first_page_ == 0, "a sequence with {} pages adopts others",
        page_ids_.size());
  const auto num_pages = static_cast<int64_t>(keys.size());
  first_page_ = static_cast<int32_t>(first_visible_page(num_pages * page_size_));
  for (int64_t i = first_page_; i < num_pages; ++i) {
    const std::optional<int32_t> id = pool.find(keys[static_cast<size_t>(i)]);
    CHECK(id.has_value(), "page {} of a cached prefix of {}", i, num_pages);
    pool.share(*id);
    page_ids_.push_back(*id);
  }
}

void SequencePages::publish(PagePool& pool, int64_t begin, std::span<const PageKey> keys) const {
  for (int64_t i = std::max<int64_t>(begin, first_page_); i < static_cast<int64_t>(keys.size());
       ++i) {
    pool.publish(page_ids_[static_cast<size_t>(i - first_page_)], keys[static_cast<size_t>(i)]);
  }
}

void SequencePages::drop_out_of_window(PagePool& pool, int64_t num_confirmed) {
  const int64_t drop = std::min<int64_t>(first_visible_page(num_confirmed) - first_page_,
                                         static_cast<int64_t>(page_ids_.size()));
  if (drop <= 0) return;
  for (int64_t i = 0; i < drop; ++i) pool.release(page_ids_[static_cast<size_t>(i)]);
  page_ids_.erase(page_ids_.begin(), page_ids_.begin() + drop);
  first_page_ += static_cast<int32_t>(drop);
}

void SequencePages::release_all(PagePool& pool) {
  for (auto id = page_ids_.rbegin(); id != page_ids_.rend(); ++id) pool.release(*id);
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

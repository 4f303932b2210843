#include "kvcache/page_pool.h"

#include "base/check.h"

namespace briar {

PagePool::PagePool(int32_t num_pages) : pages_(static_cast<size_t>(num_pages)) {
  free_.reserve(pages_.size());
  for (int32_t id = num_pages - 1; id >= 0; --id) free_.push_back(id);
}

PagePool::Page& PagePool::page(int32_t page_id) {
  CHECK(page_id >= 0 && page_id < num_pages(), "page {} of {}", page_id, num_pages());
  return pages_[static_cast<size_t>(page_id)];
}

std::optional<int32_t> PagePool::allocate() {
  int32_t id = oldest_;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else if (id != kNone) {
    remove_evictable(id);
    forget(page(id));
  } else {
    return std::nullopt;
  }
  page(id).num_holders = 1;
  return id;
}

void PagePool::share(int32_t page_id) {
  Page& p = page(page_id);
  CHECK(p.num_holders > 0 || p.is_evictable, "page {} is free and cannot be shared", page_id);
  if (p.num_holders++ == 0) remove_evictable(page_id);
}

void PagePool::release(int32_t page_id) {
  Page& p = page(page_id);
  CHECK_GT(p.num_holders, 0, "page {} is released by nobody", page_id);
  if (--p.num_holders > 0) return;
  if (p.has_key) {
    append_evictable(page_id);
  } else {
    free_.push_back(page_id);
  }
}

void PagePool::publish(int32_t page_id, const PageKey& key) {
  Page& p = page(page_id);
  CHECK_GT(p.num_holders, 0, "page {} is published and held by nobody", page_id);
  if (p.has_key) {
    CHECK(p.key == key, "page {} has another content already", page_id);
    return;
  }
  if (!by_key_.emplace(key, page_id).second) return;
  p.key = key;
  p.has_key = true;
}

std::optional<int32_t> PagePool::find(const PageKey& key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? std::nullopt : std::optional<int32_t>(it->second);
}

void PagePool::append_evictable(int32_t page_id) {
  Page& p = page(page_id);
  p.is_evictable = true;
  p.older = newest_;
  p.newer = kNone;
  (newest_ == kNone ? oldest_ : page(newest_).newer) = page_id;
  newest_ = page_id;
  ++num_evictable_;
}

void PagePool::remove_evictable(int32_t page_id) {
  Page& p = page(page_id);
  CHECK(p.is_evictable, "page {} is not on the eviction list", page_id);
  (p.older == kNone ? oldest_ : page(p.older).newer) = p.newer;
  (p.newer == kNone ? newest_ : page(p.newer).older) = p.older;
  p.is_evictable = false;
  p.older = p.newer = kNone;
  --num_evictable_;
}

void PagePool::forget(Page& p) {
  CHECK_EQ(by_key_.erase(p.key), size_t{1}, "an evictable page has a key");
  p.has_key = false;
}

void PagePool::check_invariants() const {
  std::vector<int> states(pages_.size(), 0);
  for (const int32_t id : free_) {
    const Page& p = pages_[static_cast<size_t>(id)];
    CHECK(p.num_holders == 0 && !p.is_evictable && !p.has_key, "page {} is free and {} hold it", id,
          p.num_holders);
    ++states[static_cast<size_t>(id)];
  }
  int32_t count = 0;
  for (int32_t id = oldest_, older = kNone; id != kNone;
       older = id, id = pages_[static_cast<size_t>(id)].newer) {
    const Page& p = pages_[static_cast<size_t>(id)];
    CHECK(p.num_holders == 0 && p.is_evictable && p.has_key && p.older == older,
          "page {} on the eviction list", id);
    ++states[static_cast<size_t>(id)];
    ++count;
    CHECK_LE(count, num_pages(), "the eviction list runs in a circle");
  }
  CHECK_EQ(count, num_evictable_, "length of the eviction list");
  size_t num_keys = 0;
  for (size_t id = 0; id < pages_.size(); ++id) {
    const Page& p = pages_[id];
    states[id] += p.num_holders > 0 ? 1 : 0;
    CHECK_EQ(states[id], 1, "states of page {}", id);
    if (!p.has_key) continue;
    ++num_keys;
    const auto it = by_key_.find(p.key);
    CHECK(it != by_key_.end() && it->second == static_cast<int32_t>(id),
          "the key of page {} leads elsewhere", id);
  }
  CHECK_EQ(num_keys, by_key_.size(), "keys");
}

}  // namespace briar

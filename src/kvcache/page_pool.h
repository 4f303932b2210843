// KV pages of one kind: who holds them, what they contain, and which may be taken next.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kvcache/page_key.h"

namespace briar {

// A page is in one of three states:
//
//   free       nobody holds it, its content means nothing
//   held       by one or more sequences (reference count)
//   evictable  nobody holds it, but its content has a key and can be found again; the least
//   recently released one
//              is given away when no page is free
//
// Host only; one thread at a time.
class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  // A page with one holder and no key: a free one (the most recently freed first: its memory is the
  // likeliest to be in a cache), else the oldest evictable one, which is forgotten. nullopt = every
  // page is held.
  std::optional<int32_t> allocate();
  // One more holder of a held or evictable page.
  void share(int32_t page_id);
  // One holder less. The last one leaves the page evictable if it has a key, else free.
  void release(int32_t page_id);

  // Names the content of a held page, from now on fixed. If another page has the key already, that
  // one keeps it and this page stays nameless: content is stored once where it can be.
  void publish(int32_t page_id, const PageKey& key);
  // The page with this content, held or evictable.
  std::optional<int32_t> find(const PageKey& key) const;

  int32_t num_pages() const { return static_cast<int32_t>(pages_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_evictable() const { return num_evictable_; }
  // What allocate() can give.
  int32_t num_available() const { return num_free() + num_evictable_; }
  int32_t num_holders(int32_t page_id) const {
    return pages_[static_cast<size_t>(page_id)].num_holders;
  }

  // Every page is in exactly one state, keys and the eviction list agree with it.
  void check_invariants() const;

 private:
  static constexpr int32_t kNone = -1;
  struct Page {
    int32_t num_holders = 0;
    int32_t older = kNone, newer = kNone;  // neighbours in the eviction list
    bool is_evictable = false;
    bool has_key = false;
    PageKey key;
  };
  Page& page(int32_t page_id);
  void append_evictable(int32_t page_id);
  void remove_evictable(int32_t page_id);
  void forget(Page& page);

  std::vector<Page> pages_;
  std::vector<int32_t> free_;
  int32_t oldest_ = kNone, newest_ = kNone;
  int32_t num_evictable_ = 0;
  std::unordered_map<PageKey, int32_t, PageKeyHash> by_key_;
};

}  // namespace briar

#include "grammar/compile_cache.h"

#include <utility>

namespace briar {

CompileCache::Value CompileCache::get(const std::string& key,
                                      const std::function<Value()>& compile) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ++stats_.num_hits;
    by_age_.splice(by_age_.begin(), by_age_, found->second.age);
    const std::shared_future<Value> value = found->second.value;
    lock.unlock();
    return value.get();
  }
  std::promise<Value> promise;
  by_age_.push_front(key);
  entries_.emplace(key, Entry{.value = promise.get_future().share(), .age = by_age_.begin()});
  ++stats_.num_compiled;
  lock.unlock();

  Value value = compile();
  lock.lock();
  finish(key, value);
  lock.unlock();
  promise.set_value(value);
  return value;
}

void CompileCache::finish(const std::string& key, const Value& value) {
  const auto entry = entries_.find(key);
  if (!value.ok()) {
    by_age_.erase(entry->second.age);
    entries_.erase(entry);
    return;
  }
  entry->second.is_ready = true;
  entry->second.num_bytes = (*value)->num_bytes() + static_cast<int64_t>(key.size());
  stats_.num_bytes += entry->second.num_bytes;
  const auto is_over = [&] {
    return static_cast<int64_t>(entries_.size()) > max_entries_ || stats_.num_bytes > max_bytes_;
  };
  for (auto age = by_age_.end(); is_over() && age != by_age_.begin();) {
    const auto oldest = entries_.find(*--age);
    if (!oldest->second.is_ready) continue;  // somebody is compiling it
    stats_.num_bytes -= oldest->second.num_bytes;
    age = by_age_.erase(age);
    entries_.erase(oldest);
  }
}

GrammarCacheStats CompileCache::stats() const {
  const std::lock_guard lock(mutex_);
  GrammarCacheStats stats = stats_;
  stats.num_entries = static_cast<int64_t>(entries_.size());
  return stats;
}

}  // namespace briar

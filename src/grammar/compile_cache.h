// Compiled grammars by their source: bounded, least recently used out first.
#pragma once

#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "grammar/text_grammar.h"

namespace briar {

// Thread-safe.
class CompileCache {
 public:
  using Value = Result<std::shared_ptr<const TextGrammar>>;

  CompileCache(int64_t max_entries, int64_t max_bytes)
      : max_entries_(max_entries), max_bytes_(max_bytes) {}

  // What is there, or what `compile` yields; failures are not kept. Who comes while it runs waits
  // for it. `compile` must not throw.
  Value get(const std::string& key, const std::function<Value()>& compile);
  GrammarCacheStats stats() const;

 private:
  struct Entry {
    std::shared_future<Value> value;
    std::list<std::string>::iterator age;
    int64_t num_bytes = 0;
    bool is_ready = false;
  };

  void finish(const std::string& key, const Value& value);

  const int64_t max_entries_;
  const int64_t max_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::list<std::string> by_age_;  // the latest first
  GrammarCacheStats stats_;
};

}  // namespace briar

// Responses kept for GET, DELETE, cancel and previous_response_id: in memory, bounded in number,
// bytes and age.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/api/limits.h"
#include "server/api/responses.h"

namespace briar {

struct StoredResponse {
  std::string json;           // the response as GET answers it
  Conversation conversation;  // its input and output; empty while it is in progress
  bool is_in_progress = false;
};

// Thread-safe. When a bound is reached, the oldest response goes; one in progress in the background
// does not.
class ResponseStore {
 public:
  explicit ResponseStore(const ApiLimits& limits) : limits_(limits) {}

  void put(const std::string& id, StoredResponse response);
  // Replaces one that is there; false if it has been deleted or cancelled since.
  bool update(const std::string& id, StoredResponse response);
  std::optional<std::string> json(std::string_view id);
  // An unknown id is an error of status 404; so is a response without an end.
  Result<Conversation> conversation(std::string_view id);
  bool erase(std::string_view id);
  size_t size();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string id;
    StoredResponse response;
    size_t num_bytes = 0;
    Clock::time_point expiry;
  };
  using Entries = std::list<Entry>;

  void evict();  // under the lock
  Entries::iterator find(std::string_view id);
  void erase(Entries::iterator entry);

  const ApiLimits limits_;
  std::mutex mutex_;
  Entries entries_;  // oldest first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  size_t num_bytes_ = 0;
};

}  // namespace briar

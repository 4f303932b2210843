#include "server/api/response_store.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace briar {
namespace {

size_t bytes_of(const std::string& id, const StoredResponse& response) {
  constexpr size_t kOverhead = 512;  // of an entry, and of a message
  size_t num_bytes = kOverhead + id.size() + response.json.size();
  for (const Message& message : response.conversation.messages) {
    num_bytes += kOverhead;
    for (const ContentPart& part : message.content) {
      if (const auto* text = std::get_if<TextContent>(&part)) num_bytes += text->text.size();
    }
  }
  for (const auto& [call_id, name] : response.conversation.call_names) {
    num_bytes += kOverhead + call_id.size() + name.size();
  }
  return num_bytes;
}

}  // namespace

void ResponseStore::put(const std::string& id, StoredResponse response) {
  std::lock_guard lock(mutex_);
  if (const auto old = find(id); old != entries_.end()) erase(old);
  const size_t num_bytes = bytes_of(id, response);
  const auto lifetime = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(limits_.stored_response_seconds));
  entries_.push_back({.id = id,
                      .response = std::move(response),
                      .num_bytes = num_bytes,
                      .expiry = Clock::now() + lifetime});
  by_id_[id] = std::prev(entries_.end());
  num_bytes_ += num_bytes;
  evict();
}

bool ResponseStore::update(const std::string& id, StoredResponse response) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = find(id);
    if (entry == entries_.end() || !entry->response.is_in_progress) return false;
  }
  put(id, std::move(response));
  return true;
}

std::optional<std::string> ResponseStore::json(std::string_view id) {
  std::lock_guard lock(mutex_);
  evict();
  const auto entry = find(id);
  if (entry == entries_.end()) return std::nullopt;
  return entry->response.json;
}

Result<Conversation> ResponseStore::conversation(std::string_view id) {
  std::lock_guard lock(mutex_);
  evict();
  const auto entry = find(id);
  const bool is_known = entry != entries_.end();
  if (is_known && !entry->response.is_in_progress) return entry->response.conversation;
  Error error = make_error("the response '{}' {}", lossy_utf8(id.substr(0, 128)),
                           is_known ? "is still in progress" : "is not stored here (any more)");
  error.http_status = is_known ? 400 : 404;
  return error;
}

bool ResponseStore::erase(std::string_view id) {
  std::lock_guard lock(mutex_);
  const auto entry = find(id);
  if (entry == entries_.end()) return false;
  erase(entry);
  return true;
}

size_t ResponseStore::size() {
  std::lock_guard lock(mutex_);
  evict();
  return entries_.size();
}

void ResponseStore::evict() {
  const Clock::time_point now = Clock::now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool is_too_much =
        entries_.size() > limits_.max_stored_responses || num_bytes_ > limits_.max_stored_bytes;
    if (entry->expiry > now && !is_too_much) return;  // the rest is younger
    if (!entry->response.is_in_progress) erase(entry);
    entry = next;
  }
}

ResponseStore::Entries::iterator ResponseStore::find(std::string_view id) {
  const auto found = by_id_.find(std::string(id));
  return found == by_id_.end() ? entries_.end() : found->second;
}

void ResponseStore::erase(Entries::iterator entry) {
  num_bytes_ -= entry->num_bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

}  // namespace briar

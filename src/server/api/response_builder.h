// A response as it comes into being: items from deltas, and the events that tell of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answer_format.h"
#include "server/api/api_context.h"
#include "server/api/generation.h"
#include "server/api/responses.h"

namespace briar {

enum class ResponseStatus { kQueued, kInProgress, kCompleted, kIncomplete, kFailed, kCancelled };
std::string_view to_string(ResponseStatus status);

class ResponseBuilder {
 public:
  // Gets each event's type and its JSON, in order; may be empty.
  using EventSink = std::function<void(std::string_view type, std::string_view json)>;

  ResponseBuilder(const ApiConfig& config, AnswerHead head, const ResponsesRequest& request,
                  EventSink sink);

  // response.created and response.in_progress.
  void begin();
  void take(std::span<const Delta> deltas, std::span<const ReadToken> tokens);
  // Closes what is open and tells of the end: completed, or incomplete if the budget or an early
  // stop cut it.
  void finish(const ChoiceStatus& status, const Usage& usage);
  void fail(const Error& error);
  // The state alone, without an event.
  void set_status(ResponseStatus status) { status_ = status; }

  // The response object as it is now.
  std::string json() const;
  // The conversation with this answer at its end.
  Conversation conversation() const;

 private:
  struct Item {
    Delta::Kind kind = Delta::Kind::kContent;
    int message_idx = 0;
    std::string id;
    std::string text;  // of a call: its arguments
    std::string call_id, name;
    std::string logprobs;  // without brackets
    bool is_open = true;
    bool is_whole = true;
  };

  void open_item(const Delta& delta);
  void append(const std::string& text, const std::string& logprobs);
  void close_item(bool is_whole);
  std::string item_json(const Item& item) const;
  std::string part_json(const Item& item) const;
  // "item_id", "output_index" and, for parts, "content_index" of the latest item.
  std::string place_json() const;
  void emit(std::string_view type, const std::string& fields);
  void emit_state(std::string_view type);

  const ApiConfig& config_;
  const AnswerHead head_;
  const GenerationParams params_;
  const ResponseEcho echo_;
  Conversation input_;
  const EventSink sink_;
  ResponseStatus status_ = ResponseStatus::kInProgress;
  std::string incomplete_reason_;
  std::optional<Error> error_;
  std::optional<Usage> usage_;
  std::vector<Item> items_;
  std::string pending_logprobs_;  // of tokens whose text is still held back
  int64_t num_events_ = 0;
  bool is_background_ = false;
  bool is_stored_ = true;
  bool truncates_ = false;
};

}  // namespace briar

#include "server/api/answer_reply.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/api/error_json.h"
#include "server/api/fields.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

// A stream begins with its first token, so that what goes wrong before has a status of its own; but
// not later than this, so that nobody on the way takes a long prompt for a dead connection.
constexpr double kLatestBeginSeconds = 2;

}  // namespace

void send_error(HttpReply& reply, const Error& error) {
  HttpHeaders headers;
  if (error.http_status == 429) headers.emplace_back("Retry-After", "1");
  // OpenAI's clients repeat a request after any 5xx: a passed deadline would pass again.
  if (error.http_status == 504) headers.emplace_back("X-Should-Retry", "false");
  reply.send(error.http_status, "application/json", error_json(error), std::move(headers));
}

void send_json(HttpReply& reply, std::string body, HttpHeaders headers) {
  reply.send(200, "application/json", std::move(body), std::move(headers));
}

Status check_model(const ApiConfig& config, std::string_view name) {
  const auto& names = config.model_names;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return Ok{};
  Error error = make_error("the model '{}' does not exist; this server has '{}'",
                           lossy_utf8(name.substr(0, 256)), names.front());
  error.param = "model";
  error.http_status = 404;
  error.code = "model_not_found";
  return error;
}

HttpHeaders ignored_headers(const std::vector<std::string>& ignored) {
  if (ignored.empty()) return {};
  return {{"X-Briar-Ignored-Fields", ignored_fields_header(ignored)}};
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void AnswerReply::start(std::vector<ChoicePlan> plans) {
  const auto self = shared_from_this();
  Generation::Events events{
      .on_progress = [self](size_t choice, Deltas deltas,
                            Tokens tokens) { self->progress(choice, deltas, tokens); },
      .on_end = [self](const Error* error) { self->end(error); }};
  auto generation = Generation::start(
      *config().engine, std::move(plans), config().limits.max_queued_tokens,
      [reply = setup_.reply](std::function<void()> work) { reply->post(std::move(work)); },
      std::move(events), config().observer);
  if (!generation) return send_error(*setup_.reply, generation.error());
  generation_ = *generation;
  setup_.reply->on_closed([weak = weak_from_this()] {
    if (auto reply = weak.lock()) reply->cancel();
  });
  if (!params().is_stream) return;
  setup_.reply->post_after(kLatestBeginSeconds, [weak = weak_from_this()] {
    if (auto reply = weak.lock()) reply->begin();
  });
}

void AnswerReply::begin() {
  if (has_begun_ || is_gone_) return;
  has_begun_ = true;
  setup_.reply->begin_events(setup_.headers);
  stream_begin();
}

void AnswerReply::progress(size_t choice, Deltas deltas, Tokens tokens) {
  if (is_gone_) return;
  current_ = generation_.lock();
  if (params().is_stream) {
    begin();
    stream(choice, deltas, tokens);
  } else {
    keep(choice, deltas, tokens);
  }
  current_.reset();
}

void AnswerReply::end(const Error* error) {
  if (is_gone_) return;
  HttpReply& reply = *setup_.reply;
  current_ = generation_.lock();
  if (error != nullptr && !has_begun_) {
    send_error(reply, *error);
  } else if (error != nullptr) {
    reply.send_event("", error_json(*error));
    reply.end_events();
  } else if (params().is_stream) {
    if (params().includes_usage) send(usage_chunk(usage()));
    send("[DONE]");
    if (!is_gone_) reply.end_events();
  } else {
    send_json(reply, whole(), setup_.headers);
  }
  current_.reset();
}

std::string AnswerReply::chunk_usage() const {
  if (params().includes_running_usage && current_) return ",\"usage\":" + usage_json(usage());
  return params().includes_usage ? ",\"usage\":null" : "";
}

bool AnswerReply::send(std::string_view chunk) {
  if (!is_gone_ && !setup_.reply->send_event("", chunk)) cancel();
  return !is_gone_;
}

void AnswerReply::cancel() {
  is_gone_ = true;
  if (auto generation = generation_.lock()) generation->cancel();
}

}  // namespace briar

// A client's end of the API for tests: no sockets, everything else real.
#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "briar/engine.h"
#include "formats/registry.h"
#include "server/api/openai_api.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Runs posted work on the test's own thread and records what is answered.
class RecordedReply final : public HttpReply {
 public:
  void send(int new_status, std::string, std::string new_body, HttpHeaders new_headers) override {
    status = new_status;
    body = std::move(new_body);
    headers = std::move(new_headers);
    finish();
  }
  void begin_events(HttpHeaders new_headers) override {
    status = 200;
    headers = std::move(new_headers);
  }
  bool send_event(std::string_view event, std::string_view data) override {
    if (events.size() >= max_events) return false;
    events.emplace_back(event, data);
    return true;
  }
  void end_events() override { finish(); }
  void on_closed(std::function<void()> closed) override { closed_ = std::move(closed); }
  void post(std::function<void()> work) override {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_one();
  }
  void post_after(double, std::function<void()>) override {}

  // Runs posted work until the answer is there, or nothing came for so long. False: no answer.
  bool run(std::chrono::milliseconds patience = std::chrono::milliseconds(20000)) {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        if (is_done_ && work_.empty()) return true;
        if (!changed_.wait_for(lock, patience, [&] { return !work_.empty() || is_done_; })) {
          return false;
        }
        if (work_.empty()) return true;
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }
  void close() {
    if (closed_) closed_();
  }

  int status = 0;
  std::string body;
  HttpHeaders headers;
  std::vector<std::pair<std::string, std::string>> events;
  size_t max_events = SIZE_MAX;  // then the client is gone

 private:
  void finish() {
    std::lock_guard lock(mutex_);
    is_done_ = true;
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::function<void()> closed_;
  bool is_done_ = false;
};

// The handler of the route that serves `path`; a test without one is wrong.
inline HttpHandler handler_of(const OpenAiApi& api, const std::string& method,
                              const std::string& path) {
  for (const HttpRoute& route : api.routes()) {
    const bool is_prefix = route.path.ends_with("/*");
    const std::string prefix = route.path.substr(0, route.path.size() - (is_prefix ? 1 : 0));
    if (route.method == method && (is_prefix ? path.starts_with(prefix) : path == prefix)) {
      return route.handler;
    }
  }
  CHECK(false, "no route serves {} {}", method, path);
  return {};
}

inline std::shared_ptr<RecordedReply> call(const OpenAiApi& api, const std::string& method,
                                           const std::string& path, std::string body = {}) {
  auto reply = std::make_shared<RecordedReply>();
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.body = std::move(body);
  request.request_id = "test";
  handler_of(api, method, path)(std::move(request), reply);
  CHECK(reply->run(), "{} {} was never answered", method, path);
  return reply;
}

// "a.b[0].c" of a JSON text, serialised; empty if there is no such place.
inline std::string at(const std::string& json, const std::string& pointer) {
  boost::json::error_code code;
  const boost::json::value value = boost::json::parse(json, code);
  if (code) return "not JSON: " + json;
  const boost::json::value* found = value.find_pointer(pointer, code);
  return found == nullptr ? "" : boost::json::serialize(*found);
}

// The text at a place of a JSON text; empty if there is none.
inline std::string text_at(const std::string& json, const std::string& pointer) {
  boost::json::error_code code;
  const auto value = boost::json::parse(json, code);
  const auto* found = code ? nullptr : value.find_pointer(pointer, code);
  return found != nullptr && found->is_string() ? std::string(found->get_string().c_str()) : "";
}

// An engine that answers every request with the same ids, as far as its stops and length allow.
class RecordedEngine final : public Engine {
 public:
  explicit RecordedEngine(std::vector<int32_t> ids) : ids_(std::move(ids)) {
    description_ = {.architecture = "recorded",
                    .model_type = "gpt_oss",
                    .vocab_size = 201088,
                    .hidden_size = 1,
                    .max_model_len = 4096,
                    .bytes_per_token = 1};
  }

  const ModelDescription& model() const override { return description_; }
  Result<uint64_t> submit(Request request) override {
    if (is_full) {
      return Error{.message = "the queue is full", .param = {}, .http_status = 429};
    }
    const uint64_t id = ++num_requests;
    requests.push_back(request);
    if (never_ends) return id;
    FinishReason reason = FinishReason::kLength;
    int64_t num_tokens = 0;
    for (const int32_t token : ids_) {
      if (num_tokens == request.max_tokens) break;
      const auto& stops = request.stop_token_ids;
      const bool stops_here = std::find(stops.begin(), stops.end(), token) != stops.end();
      const bool is_stopped = request.stops_after && request.stops_after(token);
      ++num_tokens;
      if ((stops_here || is_stopped) && num_tokens >= request.sampling.min_tokens) {
        reason = FinishReason::kStop;
      }
      Output output;
      output.request_id = id;
      output.tokens.push_back({.token_id = token, .logprob = -HUGE_VALF, .top = {}});
      if (reason == FinishReason::kNone || reason == FinishReason::kLength) {
        request.on_output(std::move(output));
        continue;
      }
      output.finish_reason = reason;
      request.on_output(std::move(output));
      return id;
    }
    Output last;
    last.finish_reason = reason;
    request.on_output(std::move(last));
    return id;
  }
  void cancel(uint64_t id) override { cancelled.push_back(id); }
  void drain() override {}
  EngineStats stats() const override { return {}; }

  bool is_full = false;
  bool never_ends = false;  // requests stay as they are
  uint64_t num_requests = 0;
  std::vector<Request> requests;
  std::vector<uint64_t> cancelled;

 private:
  const std::vector<int32_t> ids_;
  ModelDescription description_;
};

inline const std::shared_ptr<const Tokenizer>& tokenizer() {
  static const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  return tokenizer;
}

inline ApiConfig config_of(Engine& engine) {
  ApiConfig config;
  config.engine = &engine;
  config.tokenizer = tokenizer();
  config.format = *make_format("harmony", tokenizer());
  config.model_names = {"tiny"};
  config.defaults.temperature = 0;
  config.defaults.stop_token_ids = {200002, 199999, 200012};
  return config;
}

inline std::vector<int32_t> ids_of(const std::string& text) {
  return tokenizer()->encode_with_specials(text);
}

}  // namespace briar

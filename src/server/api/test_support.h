// A client's end of the API for tests: no sockets, everything else real.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "briar/engine.h"
#include "server/api/openai_api.h"

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

}  // namespace briar

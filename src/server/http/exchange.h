// One request's answer on its connection: the transport's HttpReply.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace briar {

class Connection;

class Exchange final : public HttpReply, public std::enable_shared_from_this<Exchange> {
 public:
  struct Setup {
    std::shared_ptr<Connection> connection;
    std::string method;
    std::string route;    // for the metrics
    HttpHeaders headers;  // of the answer: X-Request-Id, CORS
    bool keeps_alive = true;
    bool is_chunked = true;  // event streams; HTTP/1.0 has no chunks
  };

  explicit Exchange(Setup setup);
  ~Exchange() override;

  void send(int status, std::string content_type, std::string body, HttpHeaders headers) override;
  void begin_events(HttpHeaders headers) override;
  bool send_event(std::string_view event, std::string_view data) override;
  void end_events() override;
  void on_closed(std::function<void()> closed) override;
  void post(std::function<void()> work) override;
  void post_after(double seconds, std::function<void()> work) override;

  // What follows is the connection's, on its strand.

  // The client has gone: nothing more is sent, and the handler is told. False: it had answered.
  bool client_gone();
  // The server ends: answers 503, or ends the stream with an error event.
  void end_for_shutdown();
  // A comment, if this is a stream that has not ended.
  void ping();
  void cancel_timers();

 private:
  enum class Phase { kWaiting, kStreaming, kEnded };

  void end(int status);  // under the lock
  void run_closed();

  const Setup setup_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  Phase phase_ = Phase::kWaiting;
  bool is_closed_ = false;  // ended by others than the handler
  std::function<void()> closed_;
  std::string event_;  // being made; kept for its memory
  // On the strand:
  std::vector<std::unique_ptr<boost::asio::steady_timer>> timers_;
};

}  // namespace briar

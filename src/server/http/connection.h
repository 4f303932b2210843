// One client's connection: requests in, answers out, one after another.
//
// A coroutine on the connection's strand reads requests, looks at them and waits for their answers.
// A read is under way nearly always, so that a client that goes is noticed while its answer is
// made. Bytes to send are queued from any thread and written by one writer.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/exchange.h"
#include "server/http/request_reader.h"
#include "server/http/shared_state.h"
#include "server/http/transport.h"

namespace briar {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<SharedState> shared, Strand strand,
             std::unique_ptr<Transport> transport);
  ~Connection();
  void start();

  // From any thread.
  SharedState& shared() { return *shared_; }
  const Strand& strand() const { return strand_; }
  void queue(std::string_view bytes);
  // False if the connection is closed, or is now because its client leaves too much lying.
  bool queue_bounded(std::string_view bytes);
  void post(std::function<void()> work);
  void post_answered();
  void post_close();
  // The server ends: the request under way is answered with an error; the connection closes.
  void post_shutdown();

 private:
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;
  template <class T>
  using Awaitable = asio::awaitable<T>;

  // A request that is not answered by a handler.
  struct Refusal {
    int status = 400;
    std::string_view message = {};
    std::string_view code = {};
    HttpHeaders headers = {};
  };
  // A request whose header was read, and what follows from it.
  struct Incoming {
    HttpRequest request;
    HttpHeaders answer_headers;
    const HttpRoute* route = nullptr;
    bool is_preflight = false;
    bool keeps_alive = true;
    bool is_chunked = true;
  };

  Awaitable<void> run();
  Awaitable<bool> serve_one();  // false: close
  Awaitable<bool> read_header(RequestReader& reader);
  Awaitable<bool> read_body(RequestReader& reader, const Incoming& incoming);
  Awaitable<bool> read_more();  // false: nothing more comes, or too late
  Awaitable<void> answer(Incoming& incoming);
  Awaitable<void> refuse(const Refusal& refusal, const HttpHeaders& headers,
                         bool keeps_alive = false, bool has_body = true);
  Awaitable<void> flush();
  Awaitable<void> linger();
  Awaitable<void> wake();

  std::optional<Refusal> admit(const RequestReader& reader, Incoming& incoming) const;
  std::optional<Refusal> check_access(const RequestReader& reader, const Incoming& incoming,
                                      std::string_view allowed_methods) const;
  void call_handler(Incoming& incoming);

  void append(std::string_view bytes);  // under the lock
  void start_read();
  void read_done(const ErrorCode& error, size_t size);
  void step_done(const ErrorCode& error, size_t size);  // a handshake or a shutdown
  void write_waiting();
  void start_write();
  void write_done(const ErrorCode& error, size_t size);
  void start_tick();
  void tick();
  void set_deadline(double seconds);
  void notify() { event_.cancel_one(); }
  void close();
  bool is_flushed();

  const std::shared_ptr<SharedState> shared_;
  const Strand strand_;

  // From any thread, under the mutex:
  std::mutex mutex_;
  std::string waiting_;       // bytes behind those being written
  bool has_writer_ = false;   // a write is under way or will be soon
  bool is_refusing_ = false;  // takes no more bytes
  uint64_t num_queued_ = 0;   // pieces, ever
  size_t num_writing_ = 0;    // bytes at the end of writing_ that the client has not taken yet

  // On the strand:
  std::unique_ptr<Transport> transport_;
  asio::steady_timer event_;  // cancelled when something happened that run() may wait for
  asio::steady_timer tick_;
  std::optional<Clock::time_point> deadline_;  // for what run() waits for from the client
  std::array<char, 16384> chunk_;              // of the read under way
  std::string input_;                          // read and not yet used
  std::string writing_;                        // being written
  std::weak_ptr<Exchange> exchange_;
  bool is_reading_ = false;
  bool has_ended_ = false;  // the client sends no more
  bool is_late_ = false;    // the deadline passed
  bool is_writing_ = false;
  bool is_step_done_ = false;
  bool is_step_good_ = false;
  bool is_answered_ = false;
  bool is_shutting_down_ = false;
  bool is_closed_ = false;
  uint64_t num_written_ = 0;   // bytes, ever
  uint64_t seen_written_ = 0;  // at the latest progress
  uint64_t seen_queued_ = 0;
  Clock::time_point write_progress_ = {};
  Clock::time_point queue_progress_ = {};
};

}  // namespace briar

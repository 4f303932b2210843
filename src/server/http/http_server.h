// An HTTP/1.1 server: plain or TLS, TCP or a unix socket, a few threads for thousands of streams.
//
//   HttpServer server({.port = 0});
//   server.add({.method = "GET", .path = "/health", .handler = ...});
//   server.start();
//   ... server.begin_drain(); server.wait_until_idle(30); server.stop();
//
// docs/server.md has the limits and what happens when they are passed.
#pragma once

#include <memory>
#include <string>

#include "server/http/http.h"
#include "server/http/http_options.h"

namespace briar {

class HttpServer {
 public:
  // Throws UserError for options that contradict each other or certificates that cannot be read.
  explicit HttpServer(HttpOptions options);
  // Stops.
  ~HttpServer();

  // Before start().
  void add(HttpRoute route);
  // Listens and answers from now on. Throws UserError if the address is not to be had.
  void start();
  // "http://127.0.0.1:8000", "unix:/run/briar.sock".
  std::string address() const;

  // From now on new requests get 503, except on routes that serve in drain; what is being answered
  // goes on.
  void begin_drain();
  bool is_draining() const;
  // Requests being answered, drain routes included.
  int64_t num_active() const;
  // Ends what is being answered: with 503 or, in a stream, an error event. Handlers hear of it
  // (HttpReply::on_closed).
  void end_answers();
  // Closes all connections, drops what is queued, and waits for the threads. Replies that are still
  // held do nothing from then on.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace briar

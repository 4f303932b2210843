// How a server listens and what it puts up with. docs/server.md lists all of it for users.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace briar {

// Times are in seconds. A limit that is passed ends the request with an error and its connection.
struct HttpLimits {
  size_t max_connections = 8192;
  size_t max_header_bytes = 64 << 10;  // request line and headers
  size_t max_headers = 100;            // header fields
  size_t max_target_bytes = 8 << 10;   // path and query
  size_t max_body_bytes = size_t{32} << 20;
  size_t max_total_body_bytes = size_t{512} << 20;  // of all requests being read at once
  size_t max_pending_bytes = size_t{1} << 20;       // of one event stream, not yet taken
  double header_seconds = 10;  // from a request's first byte to the end of its header; handshakes
  double body_seconds = 60;    // for the body
  double idle_seconds = 75;    // between two requests of a connection
  double write_seconds = 30;   // without a byte taken by the client
  double ping_seconds = 15;    // an event stream with nothing to say sends a comment this often
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;               // 0 = any that is free
  std::string unix_socket = {};  // a path: listen there instead of host and port
  std::string tls_cert = {};     // PEM files; both or none
  std::string tls_key = {};
  int num_threads = 2;
  std::vector<std::string> api_keys = {};      // none: no key is asked for
  std::vector<std::string> cors_origins = {};  // "https://app.example"; no wildcard
  HttpLimits limits = {};
  // An answer was given or, for a stream, has ended. `route` is the route's path; empty if no route
  // was reached.
  std::function<void(std::string_view method, std::string_view route, int status, double seconds)>
      on_answered = {};
};

}  // namespace briar

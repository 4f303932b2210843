// The border between HTTP and what is served: no Beast, no sockets, no JSON here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace briar {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;      // "POST"
  std::string path;        // without the query, percent-decoded: "/v1/responses/resp_1"
  std::string query;       // after '?', raw
  HttpHeaders headers;     // names in lower case
  std::string body;        // whole; size within the limit
  std::string request_id;  // the client's X-Request-Id if it is fit to be echoed, else made here
  const std::string* header(std::string_view name) const;
};

// The answer to one request. Made by the transport, kept by the handler until it has answered.
// Every function may be called from any thread; all but post() in any order of threads as long as one
// at a time. A reply that is dropped unanswered answers 500.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  // One whole answer.
  virtual void send(int status, std::string content_type, std::string body, HttpHeaders headers = {}) = 0;
  // A stream of server-sent events: begin once, events, end. send_event: `event` may be empty (no
  // "event:" line). false: the client is gone, or more bytes than the limit wait for it (the
  // connection is then closed): the caller should stop what it does for it.
  virtual void begin_events(HttpHeaders headers = {}) = 0;
  virtual bool send_event(std::string_view event, std::string_view data) = 0;
  virtual void end_events() = 0;
  // `closed` runs (once, on the connection's strand) if the client goes away before the answer's end.
  virtual void on_closed(std::function<void()> closed) = 0;
  // Runs `work` on the connection's strand: one at a time, in order.
  virtual void post(std::function<void()> work) = 0;
  // Runs `work` there after this long, unless the reply has ended.
  virtual void post_after(double seconds, std::function<void()> work) = 0;
};

using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

// What a server answers to. `path` may end in "/*": the handler sees the whole path.
struct HttpRoute {
  std::string method;
  std::string path;
  HttpHandler handler;
  bool is_open = false;       // no API key is asked for
  bool serves_in_drain = false;  // still answered (not 503) while the server shuts down
};

}  // namespace briar

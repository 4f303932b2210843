// The border between HTTP and what is served: no sockets, no parser and no JSON here. Handlers and
// their tests need this header alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace briar {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// One request, read whole and within the limits (HttpLimits), with a key if the route asks for one.
struct HttpRequest {
  std::string method;      // "POST"
  std::string path;        // without the query, percent-decoded: "/v1/responses/resp_1"
  std::string query;       // after '?', as it came
  HttpHeaders headers;     // names in lower case; values as they came, any bytes
  std::string body;        // any bytes
  std::string request_id;  // the client's X-Request-Id if it is fit to be echoed, else made here

  // The value of the first header of this name (lower case), or null.
  const std::string* header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return &value;
    }
    return nullptr;
  }
};

// The answer to one request. Made by the transport, kept by the handler until it has answered; a
// reply that is dropped unanswered answers 500, an event stream that is dropped is cut off.
//
// Functions may be called from any thread, one at a time (post() at any time). A handler runs on
// its connection's strand, and so do the callbacks that these functions take; what blocks there
// delays other connections.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // One whole answer. X-Request-Id, Content-Length, CORS and connection headers are added.
  virtual void send(int status, std::string content_type, std::string body,
                    HttpHeaders headers = {}) = 0;

  // A stream of server-sent events (status 200): begin once, events, end. `event` may be empty (no
  // "event:" line); a line break in `data` begins another "data:" line. While no event comes,
  // comments keep the connection alive.
  virtual void begin_events(HttpHeaders headers = {}) = 0;
  // false: the client is gone, the server ends, or more bytes than the limit wait for a client that
  // does not read (its connection is then closed): stop what is done for it.
  virtual bool send_event(std::string_view event, std::string_view data) = 0;
  virtual void end_events() = 0;

  // `closed` runs once, on the strand, if the client goes away, is cut off, or the server ends
  // before the answer's end; at once if that has happened already. It must not own this reply.
  virtual void on_closed(std::function<void()> closed) = 0;

  // Runs `work` on the connection's strand: one at a time, in order.
  virtual void post(std::function<void()> work) = 0;
  // Runs `work` there after this long, unless the answer has ended by then.
  virtual void post_after(double seconds, std::function<void()> work) = 0;
};

using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

// What a server answers to. `path` may end in "/*": any path below it, and the handler sees the
// whole path. A handler that throws answers 500.
struct HttpRoute {
  std::string method;
  std::string path;
  HttpHandler handler;
  bool is_open = false;          // no API key is asked for
  bool serves_in_drain = false;  // still answered (not 503) while the server shuts down
};

}  // namespace briar

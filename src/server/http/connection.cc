#include "server/http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <random>
#include <utility>

#include "base/log.h"
#include "server/http/response_text.h"

namespace briar {
namespace {

// A client may send its next requests before it has its answer; this much of them is read ahead.
constexpr size_t kMaxReadAhead = 64 << 10;
// Clients that were refused in the middle of a body get this long, and this much, to finish
// sending: closing at once would have the network throw our answer away.
constexpr double kLingerSeconds = 2;
constexpr size_t kLingerBytes = size_t{64} << 20;

std::string new_request_id() {
  thread_local std::mt19937_64 random(uint64_t{std::random_device{}()} << 32 |
                                      std::random_device{}());
  return fmt::format("{:016x}{:016x}", random(), random());
}

}  // namespace

Connection::Connection(std::shared_ptr<SharedState> shared, Strand strand,
                       std::unique_ptr<Transport> transport)
    : shared_(std::move(shared)),
      strand_(std::move(strand)),
      transport_(std::move(transport)),
      event_(strand_),
      tick_(strand_) {}

Connection::~Connection() {
  std::lock_guard lock(shared_->mutex);
  shared_->connections.erase(this);
}

void Connection::start() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->connections.emplace(this, weak_from_this());
  }
  if (shared_->is_stopping) post_close();
  auto self = shared_from_this();
  asio::post(strand_, [self] { self->start_tick(); });
  asio::co_spawn(strand_, run(), [self](const std::exception_ptr& failure) {
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& e) {
        log_error("a connection failed: {}", e.what());
      }
    }
    self->close();
  });
}

// --- Requests

asio::awaitable<void> Connection::run() {
  set_deadline(shared_->options.limits.header_seconds);
  transport_->start_handshake({shared_from_this(), &Connection::step_done});
  while (!is_step_done_ && !is_closed_ && !is_late_) co_await wake();
  if (!is_step_good_) co_return;
  // GCC 12 miscompiles `while (a && co_await b)`: the coroutine would not even start.
  bool goes_on = true;
  while (goes_on && !is_closed_) goes_on = co_await serve_one();
  if (!is_closed_) co_await linger();
}

asio::awaitable<bool> Connection::serve_one() {
  RequestReader reader(shared_->options.limits);
  if (!co_await read_header(reader)) co_return false;
  Incoming incoming;
  if (auto refusal = admit(reader, incoming)) {
    // Without the body, what follows on this connection cannot be told from it.
    const bool can_go_on = reader.is_done() && incoming.keeps_alive;
    co_await refuse(*refusal, incoming.answer_headers, can_go_on, reader.method() != "HEAD");
    co_return can_go_on && !is_closed_;
  }
  if (!co_await read_body(reader, incoming)) co_return false;
  incoming.request.headers = reader.headers();
  incoming.request.body = reader.take_body();
  const bool keeps_alive = incoming.keeps_alive;
  co_await answer(incoming);
  co_return keeps_alive && !is_closed_ && !is_shutting_down_;
}

asio::awaitable<bool> Connection::read_header(RequestReader& reader) {
  set_deadline(shared_->options.limits.idle_seconds);
  // Named, because GCC 12 mistreats temporaries of class type in a co_await expression.
  const HttpHeaders no_headers;
  bool has_begun = false;
  while (true) {
    if (auto failure = reader.feed(input_)) {
      const Refusal refusal{.status = failure->status, .message = failure->message};
      co_await refuse(refusal, no_headers);
      co_return false;
    }
    if (reader.has_header()) break;
    if (reader.has_begun() && !has_begun) {
      has_begun = true;
      set_deadline(shared_->options.limits.header_seconds);
    }
    if (is_shutting_down_) co_return false;
    if (!co_await read_more()) {
      if (is_late_ && has_begun) {
        const Refusal refusal{.status = 408, .message = "the request's header took too long"};
        co_await refuse(refusal, no_headers);
      }
      co_return false;
    }
  }
  deadline_.reset();
  co_return true;
}

asio::awaitable<bool> Connection::read_body(RequestReader& reader, const Incoming& incoming) {
  const HttpLimits& limits = shared_->options.limits;
  if (!reader.is_done() && reader.expects_continue() && input_.empty()) {
    queue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  set_deadline(limits.body_seconds);
  // What this body adds to the memory of all.
  struct Share {
    std::atomic<int64_t>& total;
    int64_t bytes = 0;
    ~Share() { total.fetch_sub(bytes); }
  } share{shared_->num_body_bytes};
  std::optional<Refusal> refusal;
  while (!refusal) {
    if (auto failure = reader.feed(input_)) {
      refusal = Refusal{.status = failure->status, .message = failure->message};
      break;
    }
    const auto bytes = static_cast<int64_t>(reader.body_bytes());
    const int64_t total =
        shared_->num_body_bytes.fetch_add(bytes - share.bytes) + bytes - share.bytes;
    share.bytes = bytes;
    if (reader.is_done()) break;
    if (total > static_cast<int64_t>(limits.max_total_body_bytes)) {
      refusal = Refusal{.status = 503,
                        .message = "the server is reading too many large bodies",
                        .headers = {{"Retry-After", "1"}}};
    } else if (!co_await read_more()) {
      if (!is_late_) co_return false;
      refusal = Refusal{.status = 408, .message = "the request's body took too long"};
    }
  }
  deadline_.reset();
  if (refusal) co_await refuse(*refusal, incoming.answer_headers);
  co_return !refusal;
}

asio::awaitable<bool> Connection::read_more() {
  const size_t before = input_.size();
  start_read();
  while (input_.size() == before && !has_ended_ && !is_late_ && !is_closed_ &&
         !(is_shutting_down_ && input_.empty())) {
    co_await wake();
  }
  co_return input_.size() > before && !is_late_ && !is_closed_;
}

std::optional<Connection::Refusal> Connection::admit(const RequestReader& reader,
                                                     Incoming& incoming) const {
  HttpRequest& request = incoming.request;
  incoming.is_chunked = !reader.is_http_1_0();
  incoming.keeps_alive = reader.keeps_alive() && incoming.is_chunked && !shared_->is_draining;
  const std::string_view id = reader.header("x-request-id");
  request.request_id = is_good_request_id(id) ? std::string(id) : new_request_id();
  incoming.answer_headers = {{"X-Request-Id", request.request_id}};
  request.method = reader.method();
  const std::string_view target = reader.target();
  const size_t question = std::min(target.find('?'), target.size());
  if (!target.starts_with('/') || !decode_path(target.substr(0, question), request.path)) {
    return Refusal{.status = 400, .message = "the request's path is not well-formed"};
  }
  if (question < target.size()) request.query = target.substr(question + 1);
  const std::string_view origin = reader.header("origin");
  incoming.is_preflight = request.method == "OPTIONS" && !origin.empty() &&
                          !reader.header("access-control-request-method").empty();
  const HttpHeaders cors = incoming.is_preflight ? shared_->cors.preflight_headers(origin)
                                                 : shared_->cors.headers(origin);
  incoming.answer_headers.insert(incoming.answer_headers.end(), cors.begin(), cors.end());
  if (incoming.is_preflight) return std::nullopt;
  const Router::Match match = shared_->router.find(request.method, request.path);
  incoming.route = match.route;
  return check_access(reader, incoming, match.allowed_methods);
}

std::optional<Connection::Refusal> Connection::check_access(
    const RequestReader& reader, const Incoming& incoming, std::string_view allowed_methods) const {
  const HttpRequest& request = incoming.request;
  const bool is_open = incoming.route != nullptr && incoming.route->is_open;
  if (!shared_->keys.is_empty() && !is_open) {
    const std::string authorization(reader.header("authorization"));
    if (!shared_->keys.allows(authorization.empty() ? nullptr : &authorization)) {
      return Refusal{.status = 401,
                     .message = "this server asks for an API key: Authorization: Bearer KEY",
                     .code = "invalid_api_key",
                     .headers = {{"WWW-Authenticate", "Bearer"}}};
    }
  }
  // A web page may send simple requests without asking first. Without keys, nothing else would tell
  // them from the user's own.
  const std::string_view origin = reader.header("origin");
  if (shared_->keys.is_empty() && !origin.empty() && request.method != "GET" &&
      request.method != "HEAD" && !shared_->cors.allows(origin) &&
      !is_same_origin(origin, reader.header("host"))) {
    return Refusal{.status = 403,
                   .message = "web pages of this origin may not use the server (--cors-origin)",
                   .code = "origin_not_allowed"};
  }
  if (allowed_methods.empty()) {
    return Refusal{.status = 404, .message = "there is nothing at this path", .code = "not_found"};
  }
  if (incoming.route == nullptr) {
    return Refusal{.status = 405,
                   .message = "this path does not answer this method",
                   .code = "method_not_allowed",
                   .headers = {{"Allow", std::string(allowed_methods)}}};
  }
  if (shared_->is_draining && !incoming.route->serves_in_drain) {
    return Refusal{.status = 503,
                   .message = "the server is shutting down",
                   .code = "shutting_down",
                   .headers = {{"Retry-After", "5"}}};
  }
  return std::nullopt;
}

// --- Answers

asio::awaitable<void> Connection::answer(Incoming& incoming) {
  if (incoming.is_preflight) {
    queue(response_head({.status = 204, .keeps_alive = incoming.keeps_alive},
                        incoming.answer_headers));
    co_await flush();
    co_return;
  }
  shared_->num_active.fetch_add(1);
  call_handler(incoming);
  while (!is_closed_ && !(is_answered_ && is_flushed())) {
    if (is_shutting_down_) {
      if (const auto exchange = exchange_.lock()) exchange->end_for_shutdown();
    }
    if (!has_ended_ && input_.size() < kMaxReadAhead) start_read();
    // A client that has closed its side before its answer was made is taken for gone.
    if (has_ended_ && !is_answered_) {
      const auto exchange = exchange_.lock();
      if (exchange && exchange->client_gone()) close();
    }
    if (!is_closed_ && !(is_answered_ && is_flushed())) co_await wake();
  }
  if (const auto exchange = exchange_.lock()) exchange->cancel_timers();
  exchange_.reset();
  shared_->num_active.fetch_sub(1);
}

void Connection::call_handler(Incoming& incoming) {
  const HttpRoute& route = *incoming.route;
  // From here on the handler alone keeps it: one that it drops answers by itself.
  const auto exchange =
      std::make_shared<Exchange>(Exchange::Setup{.connection = shared_from_this(),
                                                 .method = incoming.request.method,
                                                 .route = route.path,
                                                 .headers = std::move(incoming.answer_headers),
                                                 .keeps_alive = incoming.keeps_alive,
                                                 .is_chunked = incoming.is_chunked});
  exchange_ = exchange;
  is_answered_ = false;
  queue_progress_ = Clock::now();
  try {
    route.handler(std::move(incoming.request), exchange);
  } catch (const std::exception& e) {
    log_error("{} {}: the handler threw: {}", route.method, route.path, e.what());
    exchange->send(500, "application/json", http_error_json(500, "internal error"), {});
  }
}

asio::awaitable<void> Connection::refuse(const Refusal& refusal, const HttpHeaders& headers,
                                         bool keeps_alive, bool has_body) {
  HttpHeaders all = headers;
  all.insert(all.end(), refusal.headers.begin(), refusal.headers.end());
  const std::string body = http_error_json(refusal.status, refusal.message, refusal.code);
  queue(response_head({.status = refusal.status,
                       .content_type = "application/json",
                       .content_length = body.size(),
                       .keeps_alive = keeps_alive},
                      all));
  if (has_body) queue(body);
  if (const auto& report = shared_->options.on_answered) report("", "", refusal.status, 0);
  co_await flush();
}

asio::awaitable<void> Connection::flush() {
  while (!is_closed_ && !is_flushed()) co_await wake();
}

// Says that no more comes and waits for the client to say the same.
asio::awaitable<void> Connection::linger() {
  co_await flush();
  if (is_closed_ || has_ended_) co_return;
  set_deadline(kLingerSeconds);
  transport_->cancel();  // a shutdown stands alone
  while (is_reading_ && !is_closed_) co_await wake();
  if (is_closed_) co_return;
  has_ended_ = false;
  is_step_done_ = false;
  transport_->start_shutdown({shared_from_this(), &Connection::step_done});
  while (!is_step_done_ && !is_closed_ && !is_late_) co_await wake();
  for (size_t dropped = 0; is_step_good_ && dropped < kLingerBytes;) {
    input_.clear();
    if (!co_await read_more()) break;
    dropped += input_.size();
  }
}

asio::awaitable<void> Connection::wake() {
  co_await event_.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace briar

#include "server/http/exchange.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/connection.h"
#include "server/http/response_text.h"

namespace briar {

Exchange::Exchange(Setup setup) : setup_(std::move(setup)) {}

Exchange::~Exchange() {
  if (phase_ == Phase::kWaiting) {
    send(500, "application/json", http_error_json(500, "the request was dropped unanswered"), {});
  } else if (phase_ == Phase::kStreaming) {
    end(500);
    setup_.connection->post_close();
  }
}

void Exchange::end(int status) {
  phase_ = Phase::kEnded;
  closed_ = nullptr;
  if (const auto& report = setup_.connection->shared().options.on_answered) {
    report(setup_.method, setup_.route, status,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  }
}

void Exchange::send(int status, std::string content_type, std::string body, HttpHeaders headers) {
  {
    std::lock_guard lock(mutex_);
    if (phase_ != Phase::kWaiting) return;  // the client went, or the server ends
    headers.insert(headers.end(), setup_.headers.begin(), setup_.headers.end());
    std::string text = response_head({.status = status,
                                      .content_type = content_type,
                                      .content_length = body.size(),
                                      .keeps_alive = setup_.keeps_alive},
                                     headers);
    if (setup_.method != "HEAD") text += body;
    setup_.connection->queue(text);
    end(status);
  }
  setup_.connection->post_answered();
}

void Exchange::begin_events(HttpHeaders headers) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kWaiting) return;
  phase_ = Phase::kStreaming;
  headers.insert(headers.end(), setup_.headers.begin(), setup_.headers.end());
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");  // nginx would keep events back
  setup_.connection->queue(response_head({.status = 200,
                                          .content_type = "text/event-stream; charset=utf-8",
                                          .content_length = std::nullopt,
                                          .is_chunked = setup_.is_chunked,
                                          .keeps_alive = setup_.keeps_alive},
                                         headers));
}

bool Exchange::send_event(std::string_view event, std::string_view data) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kStreaming) return false;
  event_.clear();
  append_event(event_, event, data, setup_.is_chunked);
  return setup_.connection->queue_bounded(event_);
}

void Exchange::end_events() {
  {
    std::lock_guard lock(mutex_);
    if (phase_ != Phase::kStreaming) return;
    if (setup_.is_chunked) setup_.connection->queue(kLastChunk);
    end(200);
  }
  setup_.connection->post_answered();
}

void Exchange::on_closed(std::function<void()> closed) {
  {
    std::lock_guard lock(mutex_);
    if (!is_closed_) {
      if (phase_ != Phase::kEnded) closed_ = std::move(closed);
      return;
    }
  }
  post(std::move(closed));
}

void Exchange::post(std::function<void()> work) { setup_.connection->post(std::move(work)); }

void Exchange::post_after(double seconds, std::function<void()> work) {
  using std::chrono::steady_clock;
  const auto due = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                             std::chrono::duration<double>(seconds));
  post([weak = weak_from_this(), due, work = std::move(work)]() mutable {
    const auto self = weak.lock();
    if (!self) return;
    std::lock_guard lock(self->mutex_);
    if (self->phase_ == Phase::kEnded) return;
    self->timers_.push_back(
        std::make_unique<boost::asio::steady_timer>(self->setup_.connection->strand(), due));
    self->timers_.back()->async_wait(
        [weak, work = std::move(work)](const boost::system::error_code& error) {
          if (!error && !weak.expired()) work();
        });
  });
}

bool Exchange::client_gone() {
  {
    std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnded) return false;
    phase_ = Phase::kEnded;
    is_closed_ = true;
  }
  run_closed();
  return true;
}

void Exchange::end_for_shutdown() {
  constexpr std::string_view kMessage = "the server is shutting down";
  {
    std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnded) return;
    Connection& connection = *setup_.connection;
    if (phase_ == Phase::kWaiting) {
      const std::string body = http_error_json(503, kMessage, "shutting_down");
      HttpHeaders headers = setup_.headers;
      headers.emplace_back("Retry-After", "5");
      connection.queue(response_head({.status = 503,
                                      .content_type = "application/json",
                                      .content_length = body.size(),
                                      .keeps_alive = setup_.keeps_alive},
                                     headers));
      connection.queue(body);
    } else {
      // Readable as a chunk of chat completions and as an event of responses.
      std::string data = http_error_json(503, kMessage, "shutting_down");
      data.insert(1, R"("type":"error","code":"shutting_down","message":"the server is shutting )"
                     R"(down","param":null,)");
      std::string text;
      append_event(text, "", data, setup_.is_chunked);
      if (setup_.is_chunked) text += kLastChunk;
      connection.queue(text);
    }
    is_closed_ = true;
    phase_ = Phase::kEnded;
  }
  run_closed();
  setup_.connection->post_answered();
}

void Exchange::run_closed() {
  cancel_timers();
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
  constexpr int kClientClosedRequest = 499;  // nginx's word for it in logs and metrics
  std::lock_guard lock(mutex_);
  end(kClientClosedRequest);
}

void Exchange::ping() {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kStreaming) return;
  std::string text;
  append_ping(text, setup_.is_chunked);
  setup_.connection->queue_bounded(text);
}

void Exchange::cancel_timers() { timers_.clear(); }

}  // namespace briar

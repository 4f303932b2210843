// The connection's bytes and clocks; what it does with them is in connection.cc.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/connection.h"

namespace briar {
namespace {

// Buffers that one large answer has blown up are given back.
constexpr size_t kKeptCapacity = 64 << 10;

std::chrono::steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

// How often deadlines are looked at: a quarter of the shortest, so that it is kept by and large.
double tick_seconds(const HttpLimits& l) {
  const double shortest =
      std::min({l.header_seconds, l.body_seconds, l.idle_seconds, l.write_seconds, l.ping_seconds});
  return std::clamp(shortest / 4, 0.02, 1.0);
}

}  // namespace

// --- From any thread

void Connection::queue(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  append(bytes);
}

bool Connection::queue_bounded(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  if (is_refusing_) return false;
  if (waiting_.size() + num_writing_ + bytes.size() > shared_->options.limits.max_pending_bytes) {
    is_refusing_ = true;
    post_close();
    return false;
  }
  append(bytes);
  return true;
}

void Connection::append(std::string_view bytes) {
  if (is_refusing_) return;
  waiting_ += bytes;
  ++num_queued_;
  if (has_writer_) return;
  // The writer runs after the work that is under way on the strand: what that adds goes along.
  has_writer_ = true;
  post([self = shared_from_this()] { self->write_waiting(); });
}

void Connection::post(std::function<void()> work) {
  if (!shared_->has_stopped) asio::post(strand_, std::move(work));
}

void Connection::post_answered() {
  post([self = shared_from_this()] {
    self->is_answered_ = true;
    self->notify();
  });
}

void Connection::post_close() {
  post([self = shared_from_this()] { self->close(); });
}

void Connection::post_shutdown() {
  post([self = shared_from_this()] {
    self->is_shutting_down_ = true;
    self->notify();
  });
}

// --- On the strand

void Connection::start_read() {
  if (is_reading_ || has_ended_ || is_closed_) return;
  is_reading_ = true;
  transport_->start_read(asio::buffer(chunk_), {shared_from_this(), &Connection::read_done});
}

void Connection::read_done(const ErrorCode& error, size_t size) {
  is_reading_ = false;
  input_.append(chunk_.data(), size);
  if (error) has_ended_ = true;
  notify();
}

void Connection::step_done(const ErrorCode& error, size_t) {
  is_step_done_ = true;
  is_step_good_ = !error;
  notify();
}

void Connection::write_waiting() {
  {
    std::lock_guard lock(mutex_);
    if (is_refusing_) {
      has_writer_ = false;
      return;
    }
    writing_.clear();
    if (writing_.capacity() > kKeptCapacity) writing_.shrink_to_fit();
    writing_.swap(waiting_);
    num_writing_ = writing_.size();
  }
  is_writing_ = true;
  write_progress_ = Clock::now();
  start_write();
}

void Connection::start_write() {
  transport_->start_write(
      asio::buffer(writing_.data() + writing_.size() - num_writing_, num_writing_),
      {shared_from_this(), &Connection::write_done});
}

void Connection::write_done(const ErrorCode& error, size_t size) {
  if (error) {
    is_writing_ = false;
    return close();
  }
  num_written_ += size;
  bool has_more = false;
  {
    std::lock_guard lock(mutex_);
    num_writing_ -= size;
    if (num_writing_ == 0) {
      has_more = !waiting_.empty() && !is_refusing_;
      has_writer_ = has_more;
    }
  }
  if (num_writing_ > 0) return start_write();
  is_writing_ = false;
  if (has_more) return write_waiting();
  // Within a stream nobody waits for it.
  if (is_answered_ || exchange_.expired()) notify();
}

bool Connection::is_flushed() {
  std::lock_guard lock(mutex_);
  return !has_writer_;
}

void Connection::set_deadline(double seconds) {
  is_late_ = false;
  deadline_ = Clock::now() + to_duration(seconds);
}

void Connection::start_tick() {
  if (is_closed_) return;
  tick_.expires_after(to_duration(tick_seconds(shared_->options.limits)));
  tick_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error) return;
    self->tick();
    self->start_tick();
  });
}

void Connection::tick() {
  const HttpLimits& limits = shared_->options.limits;
  const Clock::time_point now = Clock::now();
  if (deadline_ && now > *deadline_) {
    is_late_ = true;
    notify();
  }
  if (num_written_ != seen_written_) {
    seen_written_ = num_written_;
    write_progress_ = now;
  } else if (is_writing_ && now - write_progress_ > to_duration(limits.write_seconds)) {
    return close();
  }
  uint64_t num_queued = 0;
  {
    std::lock_guard lock(mutex_);
    num_queued = num_queued_;
  }
  if (num_queued != seen_queued_) {
    seen_queued_ = num_queued;
    queue_progress_ = now;
  } else if (now - queue_progress_ > to_duration(limits.ping_seconds)) {
    queue_progress_ = now;
    if (const auto exchange = exchange_.lock()) exchange->ping();
  }
}

void Connection::close() {
  if (is_closed_) return;
  is_closed_ = true;
  {
    std::lock_guard lock(mutex_);
    is_refusing_ = true;
    waiting_ = {};
  }
  transport_->close();
  tick_.cancel();
  if (const auto exchange = exchange_.lock()) exchange->client_gone();
  notify();
}

}  // namespace briar

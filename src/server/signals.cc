#include "server/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/check.h"

namespace briar {
namespace {

// A handler may touch nothing else.
std::atomic<int> event_fd = -1;
std::atomic<int> signal_count = 0;

void poke() {
  const uint64_t one = 1;
  // A full counter wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(event_fd, &one, sizeof(one));
}

void count_signal(int) {
  const int kept_errno = errno;
  signal_count.fetch_add(1);
  poke();
  errno = kept_errno;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  CHECK_EQ(sigaction(signal, &action, nullptr), 0, "signal {}", signal);
}

}  // namespace

StopSignals::StopSignals() {
  CHECK_EQ(event_fd.load(), -1, "signals are waited for in one place");
  event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  CHECK_GE(event_fd.load(), 0, "eventfd");
  signal_count = 0;
  handle(SIGTERM, count_signal);
  handle(SIGINT, count_signal);
}

StopSignals::~StopSignals() {
  handle(SIGTERM, SIG_DFL);
  handle(SIGINT, SIG_DFL);
  ::close(event_fd.exchange(-1));
}

bool StopSignals::wait(std::chrono::milliseconds longest) {
  pollfd waiting{.fd = event_fd, .events = POLLIN, .revents = 0};
  ::poll(&waiting, 1, static_cast<int>(longest.count()));
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(event_fd, &count, sizeof(count));
  if (signal_count == num_seen_) return false;
  num_seen_ = signal_count;
  return true;
}

void StopSignals::wake() { poke(); }

int StopSignals::num_signals() const { return signal_count; }

}  // namespace briar

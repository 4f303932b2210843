#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"

namespace briar {
namespace {

// A signal handler can reach nothing else. [0] is read, [1] is written.
int pipe_fds[2] = {-1, -1};
struct sigaction previous_action;

void on_signal(int) {
  const int saved_errno = errno;
  const char byte = 0;
  // A full pipe has told the reader already.
  [[maybe_unused]] const ssize_t ignored = write(pipe_fds[1], &byte, 1);
  errno = saved_errno;
}

}  // namespace

InterruptFlag::InterruptFlag() {
  CHECK(pipe_fds[0] == -1, "there is another InterruptFlag, on the descriptor {}", pipe_fds[0]);
  CHECK(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe: errno {}", errno);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGINT, &action, &previous_action) == 0, "no handler: errno {}", errno);
}

InterruptFlag::~InterruptFlag() {
  sigaction(SIGINT, &previous_action, nullptr);
  for (int& fd : pipe_fds) {
    close(fd);
    fd = -1;
  }
}

int InterruptFlag::fd() const { return pipe_fds[0]; }

bool InterruptFlag::take() {
  char bytes[64];
  bool has_come = false;
  while (read(pipe_fds[0], bytes, sizeof(bytes)) > 0) has_come = true;
  return has_come;
}

}  // namespace briar

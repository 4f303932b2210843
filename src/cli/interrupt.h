// Ctrl-C as an event to wait for instead of the end of the program.
#pragma once

namespace briar {

// While it lives, SIGINT only makes fd() readable. One at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  int fd() const;  // for poll()
  // Whether Ctrl-C came since the last call.
  bool take();
};

}  // namespace briar

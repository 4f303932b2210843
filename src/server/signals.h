// SIGTERM and SIGINT, and other reasons to wake up, for the one thread that waits for them.
#pragma once

#include <atomic>
#include <chrono>

namespace briar {

// While it lives, the two signals are counted instead of ending the process. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Waits until a signal came since the last wait(), or wake() was called, or so long. True for a
  // signal.
  bool wait(std::chrono::milliseconds longest);
  // From any thread.
  void wake();
  int num_signals() const;

 private:
  int num_seen_ = 0;
};

}  // namespace briar

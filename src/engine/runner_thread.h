// A runner on a thread of its own: packets go in, results come out in the same order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/runner.h"

namespace briar {

// Used by one thread, the engine's. The runner must outlive it.
class RunnerThread {
 public:
  explicit RunnerThread(Runner& runner);
  // Lets the step that is running finish; those behind it are dropped.
  ~RunnerThread();

  void launch(std::vector<uint8_t> packet);
  // A packet's memory that has been used and can be again; empty if there is none.
  std::vector<uint8_t> spent_buffer();
  // For a launched step of which a sequence has a mask: exactly once, in the order of the steps.
  void give_masks(MaskPacket masks);
  // Waits for the oldest launched step. Throws what the runner threw.
  StepResult wait();

 private:
  void loop();
  MaskPacket wait_for_masks(uint64_t step_id);

  Runner& runner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<uint8_t>> packets_;
  std::vector<std::vector<uint8_t>> spent_;
  std::deque<MaskPacket> masks_;
  std::deque<StepResult> results_;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace briar

#include "engine/runner_thread.h"

#include "base/check.h"

namespace briar {

RunnerThread::RunnerThread(Runner& runner) : runner_(runner), thread_([this] { loop(); }) {}

RunnerThread::~RunnerThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RunnerThread::launch(std::vector<uint8_t> packet) {
  {
    std::lock_guard lock(mutex_);
    packets_.push_back(std::move(packet));
  }
  changed_.notify_all();
}

std::vector<uint8_t> RunnerThread::spent_buffer() {
  std::lock_guard lock(mutex_);
  if (spent_.empty()) return {};
  std::vector<uint8_t> buffer = std::move(spent_.back());
  spent_.pop_back();
  return buffer;
}

void RunnerThread::give_masks(MaskPacket masks) {
  {
    std::lock_guard lock(mutex_);
    masks_.push_back(std::move(masks));
  }
  changed_.notify_all();
}

StepResult RunnerThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !results_.empty() || failure_; });
  if (results_.empty()) std::rethrow_exception(failure_);
  StepResult result = std::move(results_.front());
  results_.pop_front();
  return result;
}

MaskPacket RunnerThread::wait_for_masks(uint64_t step_id) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !masks_.empty() || stop_; });
  CHECK(!stop_, "step {} was given up before its masks came", step_id);
  MaskPacket masks = std::move(masks_.front());
  masks_.pop_front();
  CHECK_EQ(masks.step_id, step_id, "masks of another step");
  return masks;
}

void RunnerThread::loop() {
  try {
    while (true) {
      std::vector<uint8_t> packet;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !packets_.empty() || stop_; });
        if (stop_) return;
        packet = std::move(packets_.front());
        packets_.pop_front();
      }
      StepResult result =
          runner_.run(packet, [this](uint64_t step_id) { return wait_for_masks(step_id); });
      {
        std::lock_guard lock(mutex_);
        results_.push_back(std::move(result));
        spent_.push_back(std::move(packet));
      }
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace briar

#include "server/api/worker.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace briar {

Worker::Worker() : thread_([state = state_] { loop(*state); }) {}

Worker::~Worker() {
  std::deque<std::function<void()>> dropped;  // destroyed without the lock
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
    dropped.swap(state_->work);
  }
  state_->changed.notify_one();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the loop owns its state and is about to end
  } else {
    thread_.join();
  }
}

void Worker::post(std::function<void()> work) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stop) return;
    state_->work.push_back(std::move(work));
  }
  state_->changed.notify_one();
}

void Worker::loop(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return state.stop || !state.work.empty(); });
    if (state.stop) return;
    std::function<void()> work = std::move(state.work.front());
    state.work.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& e) {
      log_error("background work failed: {}", e.what());
    }
    work = nullptr;  // what it owned goes before the lock is back
    lock.lock();
  }
}

}  // namespace briar

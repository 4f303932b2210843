// A thread that does what must not be done on a client's strand.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace briar {

// Runs work one piece at a time, in order. Thread-safe. The destructor drops what has not begun; a
// piece of work may be what destroys its worker.
class Worker {
 public:
  Worker();
  ~Worker();
  void post(std::function<void()> work);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool stop = false;
  };
  static void loop(State& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace briar

// A fixed set of threads that share out the tasks of one operation at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace briar {

// A borrowed callable: no allocation, valid only during the call it is passed to.
class TaskRef {
 public:
  template <class F>
  TaskRef(F& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, int64_t task) { (*static_cast<F*>(object))(task); }) {}
  void operator()(int64_t task) const { call_(object_, task); }

 private:
  void* object_;
  void (*call_)(void*, int64_t);
};

// Which thread runs which task is not determined; a kernel must give the same bits whatever the
// answer, so every task writes its own outputs and no sum crosses tasks.
class ThreadPool {
 public:
  // `num_threads` includes the caller: 1 makes no threads. 0 means one a physical core.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls task(i) for i in [0, num_tasks), on the caller and the pool's threads; returns when all
  // are done. One caller at a time; tasks must not call run() on the same pool.
  void run(int64_t num_tasks, TaskRef task);

  // Splits [0, size) into about `num_threads * 4` ranges of at least `grain` and calls
  // body(begin, end) for each.
  template <class F>
  void for_ranges(int64_t size, int64_t grain, const F& body) {
    if (size <= 0) return;
    const int64_t step = range_step(size, grain);
    auto task = [&](int64_t i) {
      const int64_t begin = i * step;
      body(begin, begin + step < size ? begin + step : size);
    };
    run((size + step - 1) / step, task);
  }

 private:
  struct State;
  void worker_loop();
  void stop();
  int64_t range_step(int64_t size, int64_t grain) const;

  int num_threads_;
  std::unique_ptr<State> state_;
};

// Number of physical cores this process may run on.
int num_physical_cores();

}  // namespace briar

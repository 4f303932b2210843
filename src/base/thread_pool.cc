#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace briar {

// One round of work. `ticket` counts rounds: workers wait for it to change. `next` hands out task
// numbers; `active` counts workers that have not yet left the round, so that run() returns only
// when nobody can touch `task` any more.
struct ThreadPool::State {
  std::atomic<uint32_t> ticket{0};
  std::atomic<int64_t> next{0};
  std::atomic<int> active{0};
  int64_t num_tasks = 0;
  const TaskRef* task = nullptr;
  bool stop = false;
  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void drain() {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= num_tasks) return;
      try {
        (*task)(i);
      } catch (...) {
        std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }
};

namespace {

// A decode step is a few hundred short operations: a worker that slept between two of them would
// cost a wake-up (tens of microseconds) each, so it spins for about as long as an operation takes
// first.
constexpr int kSpins = 4000;

template <class Done>
void spin_until(const Done& done) {
  for (int i = 0; i < kSpins && !done(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : num_physical_cores()),
      state_(std::make_unique<State>()) {
  try {
    for (int i = 1; i < num_threads_; ++i) state_->threads.emplace_back([this] { worker_loop(); });
  } catch (const std::system_error& e) {
    stop();
    throw_user_error("cannot start {} threads: {}", num_threads_, e.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  state_->stop = true;
  state_->ticket.fetch_add(1, std::memory_order_release);
  state_->ticket.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::worker_loop() {
  uint32_t seen = 0;
  for (;;) {
    spin_until([&] { return state_->ticket.load(std::memory_order_acquire) != seen; });
    state_->ticket.wait(seen, std::memory_order_acquire);
    // Rounds do not overlap (run() waits for `active`), so exactly one ticket has passed.
    ++seen;
    if (state_->stop) return;
    state_->drain();
    if (state_->active.fetch_sub(1, std::memory_order_acq_rel) == 1) state_->active.notify_one();
  }
}

void ThreadPool::run(int64_t num_tasks, TaskRef task) {
  if (num_tasks <= 0) return;
  if (num_threads_ == 1 || num_tasks == 1) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i);
    return;
  }
  State& s = *state_;
  CHECK_EQ(s.active.load(std::memory_order_relaxed), 0, "ThreadPool::run is not reentrant");
  s.num_tasks = num_tasks;
  s.task = &task;
  s.next.store(0, std::memory_order_relaxed);
  s.active.store(num_threads_ - 1, std::memory_order_relaxed);
  s.ticket.fetch_add(1, std::memory_order_release);
  s.ticket.notify_all();
  s.drain();
  spin_until([&] { return s.active.load(std::memory_order_acquire) == 0; });
  for (int left = s.active.load(std::memory_order_acquire); left != 0;
       left = s.active.load(std::memory_order_acquire)) {
    s.active.wait(left, std::memory_order_acquire);
  }
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

int64_t ThreadPool::range_step(int64_t size, int64_t grain) const {
  const int64_t even = (size + num_threads_ * 4 - 1) / (num_threads_ * 4);
  return std::max({even, grain, int64_t{1}});
}

int num_physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  std::set<std::string> cores;
  int num_cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++num_cpus;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (std::getline(file, siblings)) cores.insert(siblings);
  }
  return std::max(1, cores.empty() ? num_cpus : static_cast<int>(cores.size()));
}

}  // namespace briar

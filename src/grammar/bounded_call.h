// Runs a function that cannot be interrupted, and waits for it only so long.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace briar {

// The function's value; nullopt if it takes longer: it then runs on by itself, so it must own all
// it uses. Throws what it throws, and std::system_error if there is no thread to be had.
template <class T>
std::optional<T> call_within(double seconds, std::function<T()> function) {
  auto task = std::make_shared<std::packaged_task<T()>>(std::move(function));
  std::future<T> value = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (value.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::timeout) {
    return std::nullopt;
  }
  return value.get();
}

}  // namespace briar

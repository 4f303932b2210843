// A bounded queue between the engine's thread and the reader of one request.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "briar/engine.h"

namespace briar {

// What the reader has not taken yet waits as one Output that grows. A reader that leaves more than
// `max_tokens` tokens lying is too slow: its request is cancelled, the engine never waits.
//
//   auto queue = std::make_shared<OutputQueue>(4096);
//   engine->submit({.prompt = ids, .on_output = [queue](Output o) { return
//   queue->push(std::move(o)); }}); while (auto output = queue->pop()) ...
//
// Thread-safe, for one reader.
class OutputQueue {
 public:
  // `on_ready`, if given, is called from the engine's thread when an empty queue got something; it
  // must not wait.
  explicit OutputQueue(int64_t max_tokens, std::function<void()> on_ready = {});

  // The engine's end. false: more than max_tokens would be waiting, or the reader has left; what
  // is waiting stays readable. An output that ends the request is always taken.
  bool push(Output output);

  // Waits. nullopt: the last output has been read.
  std::optional<Output> pop();
  // What is there, if anything.
  std::optional<Output> try_pop();
  // The reader will not come back: what is waiting is dropped and push() refuses more.
  void close();

 private:
  std::optional<Output> take();  // under the lock

  const int64_t max_tokens_;
  const std::function<void()> on_ready_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<Output> waiting_;
  bool is_closed_ = false;
  bool has_ended_ = false;  // the last output was pushed
};

}  // namespace briar

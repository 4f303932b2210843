// What /metrics reports. Names and labels are vLLM's with the prefix `briar_` (docs/metrics.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "briar/engine.h"

namespace briar {

class Metrics;

// The life of one engine request (one choice), reported as it goes. Not thread-safe; one that is
// dropped unfinished counts as finished with "abort".
class RequestSpan {
 public:
  RequestSpan() = default;  // reports nothing
  RequestSpan(RequestSpan&& other) noexcept;
  RequestSpan& operator=(RequestSpan&& other) noexcept;
  ~RequestSpan();

  // An output of the engine arrived: so many new tokens, and what else it says.
  void output(const Output& output);
  // The end, once: `reason` is the API's finish_reason ("stop", "length", "tool_calls", "abort",
  // "error", "deadline").
  void finish(std::string_view reason);

 private:
  friend class Metrics;
  using Clock = std::chrono::steady_clock;

  Metrics* metrics_ = nullptr;
  Clock::time_point begin_ = {};
  Clock::time_point last_output_ = {};
  int64_t num_tokens_ = 0;
};

// All functions are thread-safe. Outlives every span.
class Metrics {
 public:
  // `engine` is asked for its stats whenever somebody looks; it must outlive this.
  Metrics(std::string model_name, const Engine& engine);
  ~Metrics();

  // A request that is about to go to the engine: what it asks for, for the histograms.
  struct RequestSize {
    int64_t num_prompt_tokens = 0;
    int64_t max_tokens = 0;
    int64_t n = 1;
  };
  RequestSpan request_started(const RequestSize& size);
  // An answer was given or, for a stream, ended. `route` is the route's path, never the client's.
  void http_answered(std::string_view method, std::string_view route, int status, double seconds);

  // In Prometheus' text format.
  std::string prometheus_text() const;
  // One JSON object for the web page's gauges.
  std::string gauges_json() const;

 private:
  friend class RequestSpan;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace briar

// What /metrics reports. Names and labels are vLLM's with the prefix `briar_` (docs/metrics.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "briar/engine.h"
#include "server/api/observer.h"

namespace briar {

// All functions are thread-safe.
class Metrics final : public ApiObserver {
 public:
  // `engine` is asked for its stats whenever somebody looks; it must outlive this.
  Metrics(std::string model_name, const Engine& engine);
  ~Metrics() override;

  void on_first_tokens(double seconds) override;
  void on_more_tokens(double seconds, int64_t num_tokens) override;
  void on_choice_end(const ChoiceReport& report) override;
  // An answer was given or, for a stream, has ended. `route` is the route's own path, never what a
  // client made up.
  void http_answered(std::string_view method, std::string_view route, int status, double seconds);

  // In Prometheus' text format.
  std::string prometheus_text() const;
  // One JSON object for the web page's gauges.
  std::string gauges_json() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace briar

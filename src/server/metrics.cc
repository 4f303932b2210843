#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "formats/json_text.h"

namespace briar {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// The boundaries of vLLM's histograms, so that its dashboards' quantiles mean the same.
const Buckets kFirstTokenSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                    0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                    20,    40,    80,   160,  640,  2560};
const Buckets kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                               0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
const Buckets kRequestSeconds = {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5, 5,    10,
                                 15,   20,   30,  40,  50,  60,  120, 240, 480, 960, 1920, 7680};
const Buckets kTokens = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                         1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

const char* finished_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "abort";
    case FinishReason::kDeadline: return "deadline";
    default: return "error";
  }
}

}  // namespace

// The registry holds what is counted here; what the engine counts is read when somebody asks.
struct Metrics::Impl {
  Impl(std::string model, const Engine& e)
      : model_name(std::move(model)),
        labels{{"engine", "0"}, {"model_name", model_name}},
        engine(e) {}

  prometheus::Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(labels).Register(registry).Add(
        {}, buckets);
  }
  std::vector<prometheus::MetricFamily> engine_families() const;

  const std::string model_name;
  const prometheus::Labels labels;
  const Engine& engine;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  prometheus::Registry registry;
  prometheus::Histogram& first_token =
      histogram("briar_time_to_first_token_seconds", "From submission to a choice's first token.",
                kFirstTokenSeconds);
  prometheus::Histogram& inter_token =
      histogram("briar_inter_token_latency_seconds", "Between tokens of a choice.", kTokenSeconds);
  prometheus::Histogram& request_time = histogram(
      "briar_e2e_request_latency_seconds", "From submission to a choice's end.", kRequestSeconds);
  prometheus::Histogram& queue_time =
      histogram("briar_request_queue_time_seconds", "From submission to a choice's first step.",
                kRequestSeconds);
  prometheus::Histogram& inference_time =
      histogram("briar_request_inference_time_seconds", "From a choice's first step to its end.",
                kRequestSeconds);
  prometheus::Histogram& prompt_tokens =
      histogram("briar_request_prompt_tokens", "Prompt tokens of a choice.", kTokens);
  prometheus::Histogram& generation_tokens =
      histogram("briar_request_generation_tokens", "Generated tokens of a choice.", kTokens);
  prometheus::Family<prometheus::Counter>& finished =
      prometheus::BuildCounter()
          .Name("briar_request_success_total")
          .Help("Choices that ended, by reason: stop, length, abort, deadline, error.")
          .Labels(labels)
          .Register(registry);
  prometheus::Family<prometheus::Counter>& http_requests =
      prometheus::BuildCounter()
          .Name("briar_http_requests_total")
          .Help("HTTP answers by method, route and status; 499: the client went first.")
          .Register(registry);
  prometheus::Histogram& http_time =
      prometheus::BuildHistogram()
          .Name("briar_http_request_duration_seconds")
          .Help("From a request read whole to the end of its answer.")
          .Register(registry)
          .Add({}, kRequestSeconds);
};

namespace {

double kv_usage(const EngineStats& stats) {
  if (stats.num_pages == 0) return 0;
  return static_cast<double>(stats.num_pages - stats.num_free_pages) /
         static_cast<double>(stats.num_pages);
}

}  // namespace

std::vector<prometheus::MetricFamily> Metrics::Impl::engine_families() const {
  using prometheus::MetricType;
  const EngineStats s = engine.stats();
  std::vector<prometheus::MetricFamily> out;
  const auto add = [&](const char* name, const char* help, MetricType type, double value) {
    prometheus::ClientMetric metric;
    for (const auto& [key, text] : labels) metric.label.push_back({key, text});
    (type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
    out.push_back({name, help, type, {std::move(metric)}});
  };
  const auto gauge = [&](const char* name, const char* help, auto value) {
    add(name, help, MetricType::Gauge, static_cast<double>(value));
  };
  const auto counter = [&](const char* name, const char* help, auto value) {
    add(name, help, MetricType::Counter, static_cast<double>(value));
  };
  gauge("briar_num_requests_running", "Choices in the running batch.", s.num_running);
  gauge("briar_num_requests_waiting", "Choices waiting for a place in it.", s.num_waiting);
  gauge("briar_kv_cache_usage_perc", "Share of the KV pages in use, 0 to 1.", kv_usage(s));
  counter("briar_prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
          s.num_prompt_tokens + s.num_cached_tokens);
  counter("briar_prefix_cache_hits_total", "Prompt tokens found there.", s.num_cached_tokens);
  counter("briar_num_preemptions_total", "Sequences that had to give way.", s.num_preemptions);
  counter("briar_prompt_tokens_total", "Prompt tokens, computed or found in the cache.",
          s.num_prompt_tokens + s.num_cached_tokens);
  counter("briar_generation_tokens_total", "Tokens generated.", s.num_generated_tokens);
  counter("briar_engine_steps_total", "Forward passes.", s.num_steps);
  counter("briar_device_busy_seconds_total", "Time in forward passes.", s.device_busy_us / 1e6);
  counter("briar_device_idle_seconds_total", "Time between them while there was work.",
          s.device_idle_us / 1e6);
  return out;
}

Metrics::Metrics(std::string model_name, const Engine& engine)
    : impl_(std::make_unique<Impl>(std::move(model_name), engine)) {}

Metrics::~Metrics() = default;

void Metrics::on_first_tokens(double seconds) { impl_->first_token.Observe(seconds); }

void Metrics::on_more_tokens(double seconds, int64_t num_tokens) {
  // Tokens that came together share the time.
  for (int64_t i = 0; i < num_tokens; ++i) {
    impl_->inter_token.Observe(seconds / static_cast<double>(num_tokens));
  }
}

void Metrics::on_choice_end(const ChoiceReport& report) {
  impl_->finished.Add({{"finished_reason", finished_reason(report.finish_reason)}}).Increment();
  impl_->request_time.Observe(report.total_s);
  impl_->queue_time.Observe(report.queue_s);
  impl_->inference_time.Observe(std::max(0.0, report.total_s - report.queue_s));
  impl_->prompt_tokens.Observe(static_cast<double>(report.num_prompt_tokens));
  impl_->generation_tokens.Observe(static_cast<double>(report.num_tokens));
}

void Metrics::http_answered(std::string_view method, std::string_view route, int status,
                            double seconds) {
  impl_->http_requests
      .Add({{"method", std::string(method)},
            {"route", std::string(route)},
            {"status", std::to_string(status)}})
      .Increment();
  impl_->http_time.Observe(seconds);
}

std::string Metrics::prometheus_text() const {
  std::vector<prometheus::MetricFamily> families = impl_->engine_families();
  for (auto& family : impl_->registry.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

std::string Metrics::gauges_json() const {
  const EngineStats s = impl_->engine.stats();
  const double uptime =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - impl_->start).count();
  return fmt::format(
      R"({{"model":{},"running":{},"waiting":{},"kv_usage":{:.4f},"generated_tokens":{},)"
      R"("prompt_tokens":{},"cached_tokens":{},"uptime_s":{:.3f}}})",
      json_quote(impl_->model_name), s.num_running, s.num_waiting, kv_usage(s),
      s.num_generated_tokens, s.num_prompt_tokens, s.num_cached_tokens, uptime);
}

}  // namespace briar

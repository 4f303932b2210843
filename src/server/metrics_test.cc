#include "server/metrics.h"

#include <gtest/gtest.h>

namespace briar {
namespace {

class StatsOnly final : public Engine {
 public:
  const ModelDescription& model() const override { return model_; }
  Result<uint64_t> submit(Request) override { return Error{.message = "no"}; }
  void cancel(uint64_t) override {}
  void drain() override {}
  EngineStats stats() const override { return stats_; }
  EngineStats stats_;

 private:
  ModelDescription model_;
};

TEST(Metrics, TextHasWhatWasReported) {
  StatsOnly engine;
  engine.stats_ = {.num_prompt_tokens = 70,
                   .num_generated_tokens = 5,
                   .num_cached_tokens = 30,
                   .num_running = 2,
                   .num_waiting = 1,
                   .num_pages = 8,
                   .num_free_pages = 6};
  Metrics metrics("m\"1", engine);
  metrics.on_first_tokens(0.03);
  metrics.on_more_tokens(0.04, 4);
  metrics.on_choice_end({.finish_reason = FinishReason::kLength,
                         .num_prompt_tokens = 100,
                         .num_tokens = 5,
                         .queue_s = 0.5,
                         .total_s = 2});
  metrics.http_answered("POST", "/v1/x", 200, 2);
  const std::string text = metrics.prometheus_text();
  const std::string labels = R"({engine="0",model_name="m\"1"})";
  for (
      const std::string& line :
      {"briar_num_requests_running" + labels + " 2", "briar_num_requests_waiting" + labels + " 1",
       "briar_kv_cache_usage_perc" + labels + " 0.25",
       "briar_prompt_tokens_total" + labels + " 100",
       "briar_prefix_cache_hits_total" + labels + " 30",
       "briar_generation_tokens_total" + labels + " 5",
       "briar_inter_token_latency_seconds_count" + labels + " 4",
       "briar_request_inference_time_seconds_sum" + labels + " 1.5",
       std::string(
           R"(briar_time_to_first_token_seconds_bucket{engine="0",model_name="m\"1",le="0.04"} 1)"),
       std::string(
           R"(briar_request_success_total{engine="0",model_name="m\"1",finished_reason="length"} 1)"),
       std::string(R"(briar_http_requests_total{method="POST",route="/v1/x",status="200"} 1)")}) {
    EXPECT_NE(text.find(line + "\n"), text.npos) << line << "\n" << text;
  }
  EXPECT_NE(
      metrics.gauges_json().find(R"("model":"m\"1","running":2,"waiting":1,"kv_usage":0.2500)"),
      std::string::npos);
}

}  // namespace
}  // namespace briar

// The real scheduler, page pools and prefix cache, driven by a trace of requests with synthetic
// step times: no model, no weights, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scheduler.h"

namespace briar {

// One request of a trace.
struct TraceRequest {
  double arrival_ms = 0;
  int64_t prompt_len = 0;
  int64_t output_len = 0;
  // One id for each `hash_block` tokens of the prompt, the last one partial: equal ids stand for
  // equal tokens with equal tokens before them. Empty: the prompt is like no other.
  std::vector<int64_t> hash_ids;
};

struct SimulationConfig {
  SchedulerConfig scheduler;
  int64_t hash_block = 512;
  bool overlaps = true;  // a step is planned while the one before it runs
  // After every step. What the checks touch, planning finds out of the caches: times of planning
  // are measured without them.
  bool checks_invariants = true;
  bool one_after_another = false;  // a request arrives when the one before it has ended
  // A step takes step_ms + token_ms for each of its tokens: about gpt-oss-20b on one H200.
  double step_ms = 2.0;
  double token_ms = 0.01;
};

struct SimulationResult {
  int64_t num_requests = 0, num_finished = 0, num_steps = 0;
  int64_t num_invariant_failures = 0;
  std::string first_failure;
  int64_t num_prefix_hit_tokens = 0, num_prompt_tokens = 0, num_preemptions = 0;
  double makespan_ms = 0;
  std::vector<double> ttft_ms;     // arrival to first token, one a request
  std::vector<double> itl_ms;      // between tokens of one request
  std::vector<double> plan_us;     // measured: scheduling and packet building of each step
  std::vector<int64_t> plan_seqs;  // running sequences of each step, beside plan_us
  double max_wait_ratio =
      0;  // longest wait over the median wait (at least one step) of the same second of arrival
  double step_fill =
      1;  // mean share of the token budget used in steps planned while requests waited
};

// Arrivals must not decrease. Deterministic but for plan_us.
SimulationResult simulate(const SimulationConfig& config, const std::vector<TraceRequest>& trace);

}  // namespace briar

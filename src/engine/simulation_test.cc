// The scheduler under load, without a model.
#include "engine/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/check.h"

namespace briar {
namespace {

SimulationConfig config(int32_t pages, int32_t window = 0) {
  SimulationConfig c;
  c.scheduler = {.max_seqs = 64,
                 .max_batch_tokens = 1024,
                 .chunk = 128,
                 .page_size = 16,
                 .num_pages = {pages, window > 0 ? pages : 0},
                 .window = {0, window}};
  return c;
}

// Requests of up to a few hundred tokens that arrive within `span_ms`.
std::vector<TraceRequest> trace(int count, double span_ms, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TraceRequest> out;
  for (int i = 0; i < count; ++i) {
    TraceRequest r;
    r.arrival_ms = span_ms * i / count;
    r.prompt_len = 1 + static_cast<int64_t>(random() % 600);
    r.output_len = 1 + static_cast<int64_t>(random() % 200);
    out.push_back(r);
  }
  return out;
}

void expect_all_done(const SimulationResult& r, int count) {
  EXPECT_EQ(r.num_finished, count);
  EXPECT_EQ(r.num_invariant_failures, 0) << r.first_failure;
  EXPECT_EQ(r.ttft_ms.size(), static_cast<size_t>(count));
}

TEST(Simulation, EverythingFinishesInvariantsHoldAndStepsAreFull) {
  for (const int32_t window : {0, 128}) {
    const SimulationResult r = simulate(config(100000, window), trace(2000, 1000, 1));
    expect_all_done(r, 2000);
    EXPECT_EQ(r.num_preemptions, 0);
    EXPECT_LE(r.max_wait_ratio, 3);
  }
  SimulationConfig wide = config(100000);
  wide.scheduler.max_seqs = 2048;
  EXPECT_GE(simulate(wide, trace(2000, 1000, 1)).step_fill, 0.97);
}

TEST(Simulation, DraftTokensGoWithDecodeOnlySteps) {
  for (const int32_t pages : {100000, 120}) {
    for (const bool overlaps : {false, true}) {
      SimulationConfig c = config(pages, 128);
      c.overlaps = overlaps;
      const SimulationResult plain = simulate(c, trace(300, 100, 7));
      c.scheduler.num_draft_tokens = 3;
      const SimulationResult drafted = simulate(c, trace(300, 100, 7));
      expect_all_done(drafted, 300);
      EXPECT_LT(drafted.num_steps, plain.num_steps) << "nothing was verified";
    }
  }
}

TEST(Simulation, OverlapChangesNothingButWhen) {
  SimulationConfig c = config(100000, 128);
  const SimulationResult with = simulate(c, trace(1000, 500, 3));
  c.overlaps = false;
  const SimulationResult without = simulate(c, trace(1000, 500, 3));
  expect_all_done(with, 1000);
  expect_all_done(without, 1000);
  EXPECT_EQ(with.num_prompt_tokens, without.num_prompt_tokens);
  EXPECT_LE(with.makespan_ms, without.makespan_ms * 1.02);
}

TEST(Simulation, FewPagesPreemptAndStillFinish) {
  for (const int32_t window : {0, 128}) {
    const SimulationResult r = simulate(config(120, window), trace(500, 100, 2));
    expect_all_done(r, 500);
    EXPECT_GT(r.num_preemptions, 10);
  }
}

TEST(Simulation, IsDeterministic) {
  const SimulationResult a = simulate(config(200), trace(300, 100, 3)),
                         b = simulate(config(200), trace(300, 100, 3));
  EXPECT_EQ(a.num_steps, b.num_steps);
  EXPECT_EQ(a.ttft_ms, b.ttft_ms);
  EXPECT_EQ(a.itl_ms, b.itl_ms);
}

TEST(Simulation, ARequestThatCanNeverRunIsOurBug) {
  std::vector<TraceRequest> one(1);
  one[0].prompt_len = 1000;
  EXPECT_THROW(simulate(config(10), one), CheckError);
}

// Long prompts in front do not hold up the tokens of those who already decode: a step carries every
// decode, and prefill only in what is left of the budget.
TEST(Simulation, DecodesGoBeforePrefills) {
  SimulationConfig c = config(100000);
  std::vector<TraceRequest> requests;
  for (int i = 0; i < 40; ++i) {
    TraceRequest r;
    r.arrival_ms = i;
    r.prompt_len = i % 2 == 0 ? 8000 : 10;
    r.output_len = 50;
    requests.push_back(r);
  }
  const SimulationResult r = simulate(c, requests);
  const double full_step_ms = c.step_ms + c.token_ms * c.scheduler.max_batch_tokens;
  EXPECT_LE(*std::max_element(r.itl_ms.begin(), r.itl_ms.end()), full_step_ms * 1.001);
}

// The same conversation asked again and again, one after another: everything but the last partial
// page is found.
TEST(Simulation, PrefixHits) {
  SimulationConfig c = config(1000);
  c.one_after_another = true;
  std::vector<TraceRequest> requests(5);
  for (TraceRequest& r : requests)
    r = {.arrival_ms = 0, .prompt_len = 1000, .output_len = 10, .hash_ids = {1, 2}};
  EXPECT_EQ(simulate(c, requests).num_prefix_hit_tokens, 4 * 992);
  requests[3].hash_ids = {1, 3};
  EXPECT_EQ(simulate(c, requests).num_prefix_hit_tokens, 3 * 992 + 512);
  c.scheduler.caches_prefixes = false;
  EXPECT_EQ(simulate(c, requests).num_prefix_hit_tokens, 0);
}

}  // namespace
}  // namespace briar

// A mixed load with random cancels: nothing may be lost, and nothing may be left behind.
// The time it runs for is BRIAR_STORM_SECONDS, 60 without it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "briar/output_queue.h"
#include "engine_harness.h"

namespace briar {
namespace {

using Clock = std::chrono::steady_clock;

int64_t num_open_files() {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

// Allows every id below a bound that moves with what was drawn.
class Moving final : public TokenConstraint {
 public:
  void fill_mask(std::span<uint32_t> mask) override {
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i <= at_ % mask.size() ? ~0u : 0u;
  }
  void accept(int32_t token_id) override { at_ += static_cast<size_t>(token_id) % 3; }

 private:
  size_t at_ = 0;
};

Request random_request(std::mt19937& random) {
  Request r;
  // A few beginnings are shared, so that the prefix cache works for its living.
  const auto beginning = static_cast<int32_t>(random() % 5);
  const size_t length = 1 + random() % (random() % 6 == 0 ? 200 : 40);
  for (size_t i = 0; i < length; ++i) {
    r.prompt.push_back(
        static_cast<int32_t>(i < 24 ? (beginning * 97 + i * 5) % 512 : random() % 512));
  }
  r.max_tokens = static_cast<int64_t>(random() % 30);
  r.sampling.temperature = random() % 2 == 0 ? 0.f : 1.f;
  r.sampling.seed = random();
  r.priority = static_cast<int32_t>(random() % 3);
  r.stop_token_ids = {static_cast<int32_t>(random() % 512)};
  if (random() % 4 == 0) r.sampling.frequency_penalty = 0.5f;
  if (random() % 4 == 0) r.sampling.logit_bias = {{static_cast<int32_t>(random() % 512), 2}};
  if (random() % 5 == 0) r.constraint = std::make_shared<Moving>();
  if (random() % 6 == 0) r.wants_prompt_logprobs = true;
  if (random() % 6 == 0) r.num_top_logprobs = 3;
  if (random() % 9 == 0) r.wants_hidden_states = true;
  if (random() % 7 == 0) r.keeps_kv = true;
  if (random() % 9 == 0) r.deadline = Clock::now() + std::chrono::milliseconds(random() % 40);
  return r;
}

struct Storm {
  explicit Storm(Engine& engine) : engine(engine) {}

  // Submits, reads, cancels, leaves queues unread, until the time is over.
  void run(uint32_t seed, Clock::time_point end) {
    std::mt19937 random(seed);
    while (Clock::now() < end) {
      const auto queue = std::make_shared<OutputQueue>(1 + random() % 16);
      Request r = random_request(random);
      r.on_output = [queue, this](Output o) {
        if (o.finish_reason != FinishReason::kNone) ++num_ends;
        if (o.finish_reason == FinishReason::kError) ++num_errors;
        if (o.kv) keep(o.kv);
        return queue->push(std::move(o));
      };
      const auto id = engine.submit(std::move(r));
      if (!id.ok()) {
        EXPECT_EQ(id.error().http_status, 429) << id.error().message;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      ++num_submitted;
      const uint32_t what = random() % 4;
      if (what == 0) engine.cancel(*id);
      if (what == 1) queue->close();
      if (what == 2) {
        while (queue->pop()) {
        }
      }
    }
  }

  // The latest few handles live on, the others are dropped.
  void keep(std::shared_ptr<const KvHandle> kv) {
    std::lock_guard lock(mutex);
    handles[next++ % handles.size()] = std::move(kv);
  }

  Engine& engine;
  std::atomic<int64_t> num_submitted{0}, num_ends{0}, num_errors{0};
  std::mutex mutex;
  std::array<std::shared_ptr<const KvHandle>, 4> handles;
  size_t next = 0;
};

TEST(Storm, MixedLoadWithCancelsLeavesNothingBehind) {
  const char* wanted = std::getenv("BRIAR_STORM_SECONDS");
  const double seconds = wanted == nullptr ? 60 : std::atof(wanted);
  EngineOptions options = test_options("gpt-oss-random", "bf16");
  options.max_seqs = 8;
  options.chunk = 16;
  options.max_batch_tokens = 64;
  options.max_model_len = 256;
  options.kv_cache_bytes = 1 << 20;
  options.max_waiting = 40;
  const auto engine = Engine::create(options);
  const int64_t files = num_open_files();
  int64_t resident = 0;
  Storm storm(*engine);
  // The first tenth fills caches and the allocator's pools; growth is counted from there.
  for (const double part : {0.1, 0.9}) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds * part));
    std::vector<std::thread> callers;
    for (uint32_t i = 0; i < 3; ++i) callers.emplace_back([&, i] { storm.run(i + 1, end); });
    for (std::thread& t : callers) t.join();
    engine->drain();
    if (part < 0.5) resident = resident_kib();
  }
  storm.handles = {};
  ASSERT_TRUE(engine->submit({.prompt = {1}, .max_tokens = 1}).ok());  // its step reads the drops
  engine->drain();
  const EngineStats stats = engine->stats();
  std::printf("%ld requests, %lu steps, %lu preemptions, %lu cached tokens, %ld KiB grown\n",
              static_cast<long>(storm.num_submitted), static_cast<unsigned long>(stats.num_steps),
              static_cast<unsigned long>(stats.num_preemptions),
              static_cast<unsigned long>(stats.num_cached_tokens),
              static_cast<long>(resident_kib() - resident));
  EXPECT_EQ(storm.num_ends, storm.num_submitted);
  EXPECT_EQ(storm.num_errors, 0);
  EXPECT_EQ(stats.num_free_pages, stats.num_pages);
  EXPECT_EQ(stats.num_running + stats.num_waiting, 0);
  EXPECT_EQ(num_open_files(), files);
  EXPECT_LT(resident_kib() - resident, 32 << 10);
}

}  // namespace
}  // namespace briar

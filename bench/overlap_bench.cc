// Does the device wait? Decodes with tiny-harmony, with and without planning ahead, in turns within
// one run, and prints a step's wall time beside the time that the device needs for a step when
// nothing else runs (the busy time of a step without overlap).
//
//   overlap_bench [MODEL_FOLDER] [ROUNDS]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "briar/engine.h"

namespace {

struct Run {
  double wall_us = 0, busy_us = 0, engine_us = 0, tokens_per_s = 0;
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

std::vector<briar::Request> requests(int count, int64_t max_tokens) {
  std::vector<briar::Request> out;
  for (int i = 0; i < count; ++i) {
    briar::Request r;
    for (int t = 0; t < 32; ++t) r.prompt.push_back(1000 + i * 37 + t * 11);
    r.sampling.temperature = 0;
    r.max_tokens = max_tokens;
    out.push_back(std::move(r));
  }
  return out;
}

// The prompts run first, so that what is measured are steps that decode.
Run run(briar::Engine& engine, int batch, int64_t max_tokens) {
  for (briar::Request& r : requests(batch, 1)) (void)engine.submit(std::move(r));
  engine.drain();
  const briar::EngineStats before = engine.stats();
  const auto begin = std::chrono::steady_clock::now();
  for (briar::Request& r : requests(batch, max_tokens)) (void)engine.submit(std::move(r));
  engine.drain();
  const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - begin;
  const briar::EngineStats after = engine.stats();
  const auto steps = static_cast<double>(after.num_steps - before.num_steps);
  return {.wall_us = wall.count() / steps,
          .busy_us = (after.device_busy_us - before.device_busy_us) / steps,
          .engine_us = (after.engine_busy_us - before.engine_busy_us) / steps,
          .tokens_per_s = static_cast<double>(batch * max_tokens) / wall.count() * 1e6};
}

}  // namespace

int main(int argc, char** argv) {
  briar::EngineOptions options;
  options.model = argc > 1 ? argv[1] : "build/assets/models/tiny-harmony";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  options.kv_cache_bytes = int64_t{256} << 20;
  options.max_model_len = 1024;
  options.overlaps = false;
  const auto plain = briar::Engine::create(options);
  options.overlaps = true;
  const auto overlapped = briar::Engine::create(options);
  double one = 0;
  for (const int batch : {1, 8, 32}) {
    std::vector<double> wall, plain_wall, busy, engine, speed;
    for (int i = 0; i < rounds; ++i) {
      const Run a = run(*plain, batch, 128), b = run(*overlapped, batch, 128);
      wall.push_back(b.wall_us);
      engine.push_back(b.engine_us);
      speed.push_back(b.tokens_per_s);
      plain_wall.push_back(a.wall_us);
      busy.push_back(a.busy_us);
    }
    if (batch == 1) one = median(speed);
    fmt::print(
        "batch {:2}: step {:8.1f} us, without overlap {:8.1f} us, device alone {:8.1f} us: {:.3f} "
        "x "
        "the device alone (engine works {:.1f} us); {:.0f} tokens/s, {:.2f} x batch 1\n",
        batch, median(wall), median(plain_wall), median(busy), median(wall) / median(busy),
        median(engine), median(speed), median(speed) / one);
  }
}

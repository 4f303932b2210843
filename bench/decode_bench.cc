// How close decoding one sequence comes to its floor: the bytes of weights a token must read, at the
// bandwidth that this machine's memory gives to plain reading. Both are measured in this run, in turns.
//
//   decode_bench MODEL_FOLDER [PRECISION] [THREADS]
//
// Prints one JSON line. Context is short (the KV cache adds less than 1% to the bytes).
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "briar/engine.h"

namespace briar {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Sums a buffer several times larger than any cache.
class StreamingRead {
 public:
  explicit StreamingRead(int num_threads) : pool_(num_threads), data_(kWords, 1), sums_(kTasks) {}

  double gigabytes_per_second() {
    const Clock::time_point begin = Clock::now();
    auto task = [&](int64_t t) {
      uint64_t lanes[16] = {};
      const uint64_t* from = data_.data() + t * (kWords / kTasks);
      for (int64_t i = 0; i < kWords / kTasks; i += 16) {
        // As the kernels do: without it one thread reaches three quarters of what it can.
        __builtin_prefetch(from + i + 512);
        __builtin_prefetch(from + i + 520);
        for (int j = 0; j < 16; ++j) lanes[j] += from[i + j];
      }
      for (const uint64_t lane : lanes) sums_[static_cast<size_t>(t)] += lane;
    };
    pool_.run(kTasks, task);
    const double gb = kWords * 8e-9 / seconds_since(begin);
    return sums_[0] == 0 ? 0 : gb;
  }

 private:
  static constexpr int64_t kWords = int64_t{64} << 20, kTasks = 64;
  ThreadPool pool_;
  std::vector<uint64_t> data_;
  std::vector<uint64_t> sums_;
};

double decode_tokens_per_second(Engine& engine, int64_t num_tokens) {
  Clock::time_point first, last;
  int64_t count = 0;
  Request request;
  for (int32_t i = 0; i < 16; ++i) request.prompt.push_back(100 + i);
  request.sampling.temperature = 0;
  request.max_tokens = num_tokens;
  request.on_output = [&](const Output& o) {
    last = Clock::now();
    if (count == 0) first = last;
    count += static_cast<int64_t>(o.tokens.size());
    return true;
  };
  if (auto id = engine.submit(std::move(request)); !id) throw UserError(id.error());
  engine.drain();
  return static_cast<double>(count - 1) / std::chrono::duration<double>(last - first).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  if (argc < 2) throw_user_error("usage: decode_bench MODEL_FOLDER [PRECISION] [THREADS]");
  EngineOptions options;
  options.model = argv[1];
  options.precision = argc > 2 ? argv[2] : "bf16";
  options.num_threads = argc > 3 ? std::atoi(argv[3]) : 0;
  options.max_seqs = 1;
  const auto engine = Engine::create(options);
  StreamingRead reading(options.num_threads);
  decode_tokens_per_second(*engine, 32);
  reading.gigabytes_per_second();
  std::vector<double> bandwidths, speeds;
  for (int round = 0; round < 9; ++round) {
    bandwidths.push_back(reading.gigabytes_per_second());
    speeds.push_back(decode_tokens_per_second(*engine, 200));
  }
  const double bandwidth = median(bandwidths), speed = median(speeds);
  const double gigabytes = static_cast<double>(engine->model().bytes_per_token) * 1e-9;
  fmt::print(
      R"({{"model": "{}", "phase": "decode", "precision": "{}", "batch": 1, "read_gb_s": {:.1f}, "mb_per_token": {:.1f}, "tok_s": {:.1f}, "floor_tok_s": {:.1f}, "floor_fraction": {:.3f}}})"
      "\n",
      options.model.substr(options.model.rfind('/') + 1), options.precision, bandwidth, gigabytes * 1e3, speed,
      bandwidth / gigabytes, speed * gigabytes / bandwidth);
  return 0;
}

}  // namespace
}  // namespace briar

int main(int argc, char** argv) {
  try {
    return briar::run(argc, argv);
  } catch (const briar::UserError& e) {
    fmt::print(stderr, "decode_bench: {}\n", e.what());
    return 1;
  }
}

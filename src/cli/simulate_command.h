// `briar simulate`: the scheduler over a trace of requests, without a model.
#pragma once

#include <cstdint>
#include <string>

namespace briar {

struct SimulateOptions {
  std::string trace;  // a file; empty = `requests` made from `seed`
  int64_t requests = 0;
  uint64_t seed = 1;
  double load = 0;  // arrivals scaled to this share of what the engine can do; 0 = as in the trace
  bool serial = false;  // one request after another
  int64_t pages = 0;    // 0 = as many as it takes
  int32_t page_size = 16;
  int64_t limit = 0;        // only so many requests of the trace
  int32_t window = 0;       // 0 = full layers only
  int32_t max_seqs = 8192;  // as many as a full step can serve
  int32_t max_batch_tokens = 8192;
  int32_t chunk = 512;
  int32_t draft_tokens = 0;  // of each sequence in decode steps; some are taken to be right
  bool overlaps = true;      // a step is planned while the one before it runs
  bool checks = true;        // of the invariants, after every step
  bool prefix_cache = true;
  bool json = false;
};

// Returns the exit code; throws UserError.
int run_simulate(const SimulateOptions& options);

}  // namespace briar

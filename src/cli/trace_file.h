// Request traces: JSON lines {arrival_ms, prompt_len, output_len, hash_ids?}, plain or .xz.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/simulation.h"

namespace briar {

// At most `limit` requests (0 = all), sorted by arrival. Throws UserError with file and line.
std::vector<TraceRequest> read_trace(const std::string& path, int64_t limit);

// `count` requests with log-normal lengths (prompts: median 500, outputs: median 150) that arrive
// at random, one a millisecond on average. The same seed gives the same trace.
std::vector<TraceRequest> make_trace(int64_t count, uint64_t seed);

}  // namespace briar

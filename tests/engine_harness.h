// Runs requests through an engine and collects what comes back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "briar/engine.h"

namespace briar {

inline std::string model_path(const std::string& name) {
  return std::string(BRIAR_ASSETS_DIR) + "/models/" + name;
}
inline std::string golden_path(const std::string& name) {
  return std::string(BRIAR_ASSETS_DIR) + "/golden/" + name + ".jsonl";
}

// One line of a golden file, and Briar's answer to it.
struct GoldenCase {
  std::string name;
  std::vector<int32_t> prompt;
  std::vector<float> prompt_logprobs;
  std::vector<TokenLogprobs> next_top;
  std::vector<int32_t> greedy;
  std::vector<float> greedy_logprobs;
  std::vector<float> margins;
  int64_t generate = 0;
};

std::vector<GoldenCase> read_golden(const std::string& name);

// Everything a request gave; comparing two compares every bit.
struct Collected {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprobs>> top;
  std::vector<float> prompt_logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  std::string error;
  int num_last_calls = 0;  // must end up 1
};

void expect_same_bits(const Collected& a, const Collected& b, const std::string& what);

// A request of greedy tokens with all log-probabilities.
Request scoring_request(const std::vector<int32_t>& prompt, int64_t max_tokens,
                        std::vector<int32_t> stop_ids = {});

// Submits all at once and waits.
std::vector<Collected> run_all(Engine& engine, std::vector<Request> requests);

// `options` with the model's folder, checks on.
EngineOptions test_options(const std::string& model, const std::string& precision);

// The ids that end an answer of tiny-harmony.
inline const std::vector<int32_t> kHarmonyEos = {200002, 199999, 200012};

}  // namespace briar

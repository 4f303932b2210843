// Penalties and biases of one row, in fp64.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace briar {

// What the request says, in words of the request: no distinct ids, no counts.
struct LogitAdjustmentCase {
  double repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::vector<int32_t> prompt = {}, answer = {};
  std::map<int32_t, double> bias = {};
  std::set<int32_t> allowed = {}, banned = {}, masked = {};  // allowed empty = all
};

inline std::vector<double> adjust_logits_ref(std::span<const float> logits,
                                             const LogitAdjustmentCase& c) {
  std::vector<double> out(logits.begin(), logits.end());
  for (size_t i = 0; i < out.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    int in_prompt = 0, in_answer = 0;
    for (const int32_t t : c.prompt) in_prompt += t == id;
    for (const int32_t t : c.answer) in_answer += t == id;
    double& x = out[i];
    if (in_prompt + in_answer > 0) {
      x = x > 0 ? x / c.repetition_penalty : x * c.repetition_penalty;
    }
    x -= in_answer * c.frequency_penalty + (in_answer > 0 ? c.presence_penalty : 0);
    if (c.bias.count(id) > 0) x += c.bias.at(id);
    const bool is_forbidden = (!c.allowed.empty() && c.allowed.count(id) == 0) ||
                              c.banned.count(id) > 0 || c.masked.count(id) > 0;
    if (is_forbidden) x = -std::numeric_limits<double>::infinity();
  }
  return out;
}

}  // namespace briar

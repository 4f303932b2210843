// weight(i, j) = exp(scale q_i . k_j) / (exp(sink_h) + sum over visible j of exp(scale q_i . k_j))
// out_i = sum over visible j of weight(i, j) v_j;  visible: j <= i and j > i - window
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace briar {

struct AttentionRefArgs {
  std::span<const float> q, k, v,
      sinks;  // of one sequence: [queries or keys, heads, dim]; sinks [heads] or empty
  int64_t num_keys, q_heads, kv_heads, dim, window;
  double scale;
};

// The queries are the last ones of the sequence.
inline std::vector<double> attention_ref(const AttentionRefArgs& a) {
  const int64_t row = a.q_heads * a.dim, num_queries = static_cast<int64_t>(a.q.size()) / row;
  std::vector<double> out(a.q.size(), 0.0), score(static_cast<size_t>(a.num_keys));
  for (int64_t i = 0; i < num_queries * a.q_heads; ++i) {
    const int64_t head = i % a.q_heads, kv_head = head / (a.q_heads / a.kv_heads);
    const int64_t last = a.num_keys - num_queries + i / a.q_heads;
    const int64_t first = a.window > 0 ? std::max<int64_t>(0, last - a.window + 1) : 0;
    double largest = a.sinks.empty() ? -INFINITY : a.sinks[static_cast<size_t>(head)];
    for (int64_t j = first; j <= last; ++j) {
      double dot = 0;
      for (int64_t d = 0; d < a.dim; ++d) {
        dot += double{a.q[static_cast<size_t>(i * a.dim + d)]} *
               double{a.k[static_cast<size_t>((j * a.kv_heads + kv_head) * a.dim + d)]};
      }
      score[static_cast<size_t>(j)] = dot * a.scale;
      largest = std::max(largest, dot * a.scale);
    }
    double sum = a.sinks.empty() ? 0 : std::exp(a.sinks[static_cast<size_t>(head)] - largest);
    for (int64_t j = first; j <= last; ++j)
      sum += std::exp(score[static_cast<size_t>(j)] - largest);
    for (int64_t j = first; j <= last; ++j) {
      for (int64_t d = 0; d < a.dim; ++d) {
        out[static_cast<size_t>(i * a.dim + d)] +=
            std::exp(score[static_cast<size_t>(j)] - largest) / sum *
            a.v[static_cast<size_t>((j * a.kv_heads + kv_head) * a.dim + d)];
      }
    }
  }
  return out;
}

}  // namespace briar

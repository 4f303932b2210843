#include "layers/rope.h"

#include <cmath>
#include <numbers>

#include "kernels/rope/rope.h"
#include "kernels/rope/yarn.h"

namespace briar {
namespace {

double llama3_frequency(const RopeScaling& s, double plain) {
  const double turns =
      static_cast<double>(s.original_max_position_embeddings) * plain / (2 * std::numbers::pi);
  if (turns < s.low_freq_factor) return plain / s.factor;
  if (turns > s.high_freq_factor) return plain;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return plain * kept + plain / s.factor * (1 - kept);
}

std::vector<double> yarn_frequencies(const RopeScaling& s, int64_t head_dim) {
  return rope_inv_frequencies(
      {.rotary_dim = static_cast<int>(head_dim),
       .theta = s.theta,
       .factor = s.factor,
       .beta_fast = s.beta_fast,
       .beta_slow = s.beta_slow,
       .original_max_position = static_cast<double>(s.original_max_position_embeddings),
       .truncate = s.truncate,
       .attention_factor = s.attention_scale()});
}

}  // namespace

std::vector<double> rope_frequencies(const RopeScaling& s, int64_t head_dim) {
  if (s.kind == RopeKind::kYarn) return yarn_frequencies(s, head_dim);
  std::vector<double> out =
      rope_inv_frequencies({.rotary_dim = static_cast<int>(head_dim), .theta = s.theta});
  if (s.kind == RopeKind::kPerPair) {
    CHECK_EQ(s.divisors.size(), out.size(), "divisors of {} pairs", out.size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (s.kind == RopeKind::kLinear) out[i] /= s.factor;
    if (s.kind == RopeKind::kLlama3) out[i] = llama3_frequency(s, out[i]);
    if (s.kind == RopeKind::kPerPair) out[i] /= s.divisors[i];
  }
  return out;
}

Rope::Rope(const RopeScaling& scaling, int64_t head_dim)
    : attention_factor_(scaling.attention_scale()) {
  for (const double f : rope_frequencies(scaling, head_dim)) {
    inv_frequencies_.push_back(static_cast<float>(f));
  }
}

TensorView Rope::table(Stream& stream, Arena& workspace, const TensorView& positions) const {
  const TensorView out = workspace.tensor(
      DType::kFp32, {positions.size(0), 2 * static_cast<int64_t>(inv_frequencies_.size())});
  rope_table(stream, {.positions = positions,
                      .inv_frequencies = inv_frequencies_,
                      .attention_factor = attention_factor_,
                      .cos_sin = out});
  return out;
}

}  // namespace briar

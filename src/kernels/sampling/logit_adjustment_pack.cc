#include <algorithm>
#include <bit>
#include <span>

#include "kernels/sampling/logit_adjustment_sm90.h"

namespace briar::sm90 {
namespace {

template <class T>
int64_t append(std::span<const T> values, std::vector<uint32_t>& words) {
  const auto at = static_cast<int64_t>(words.size());
  for (const T value : values) words.push_back(std::bit_cast<uint32_t>(value));
  return at;
}

int64_t append_mask(const LogitAdjustment& a, size_t num_words, std::vector<uint32_t>& words) {
  const size_t at = words.size();
  words.resize(at + num_words, a.allowed_ids.empty() ? ~uint32_t{0} : 0);
  uint32_t* mask = words.data() + at;
  const auto bit_of = [](int32_t id) { return uint32_t{1} << (id % 32); };
  for (const int32_t id : a.allowed_ids) mask[id / 32] |= bit_of(id);
  for (const int32_t id : a.banned_ids) mask[id / 32] &= ~bit_of(id);
  for (size_t i = 0; i < num_words && !a.mask.empty(); ++i) mask[i] &= a.mask[i];
  return static_cast<int64_t>(at);
}

PackedAdjustment pack(const LogitAdjustment& a, int64_t row, size_t mask_words,
                      std::vector<uint32_t>& words) {
  PackedAdjustment p{
      .row = row,
      .repetition_penalty = a.repetition_penalty,
      .frequency_penalty = a.frequency_penalty,
      .presence_penalty = a.presence_penalty,
      .num_history = static_cast<int32_t>(a.history_ids.size()),
      .num_biases = static_cast<int32_t>(a.bias_ids.size()),
      .has_mask = !a.allowed_ids.empty() || !a.banned_ids.empty() || !a.mask.empty()};
  p.history_ids = append(a.history_ids, words);
  p.history_counts = append(a.history_counts, words);
  p.bias_ids = append(a.bias_ids, words);
  p.biases = append(a.biases, words);
  if (p.has_mask) p.mask = append_mask(a, mask_words, words);
  return p;
}

}  // namespace

PackedAdjustments pack_adjustments(const LogitAdjustmentArgs& args, int64_t first_row,
                                   int64_t max_bytes) {
  const auto mask_words = static_cast<size_t>((args.vocab_size + 31) / 32);
  PackedAdjustments packed;
  const LogitAdjustment nothing;
  for (int64_t row = first_row; row < args.logits.size(0); ++row) {
    const LogitAdjustment& a = args.rows[row] != nullptr ? *args.rows[row] : nothing;
    const size_t more = sizeof(PackedAdjustment) +
                        4 * (2 * a.history_ids.size() + 2 * a.bias_ids.size() + mask_words);
    const size_t have = packed.rows.size() * sizeof(PackedAdjustment) + 4 * packed.words.size();
    if (have + more > static_cast<size_t>(max_bytes)) break;
    packed.rows.push_back(pack(a, row, mask_words, packed.words));
  }
  CHECK(!packed.rows.empty(), "adjust_logits: row {} needs more than {} bytes", first_row,
        max_bytes);
  return packed;
}

}  // namespace briar::sm90

#include "kernels/sampling/logit_adjustment.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void adjust_logits(Stream& stream, const LogitAdjustmentArgs& args))

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

void apply_penalties(const LogitAdjustment& a, std::span<float> logits) {
  for (size_t i = 0; i < a.history_ids.size(); ++i) {
    float& logit = logits[static_cast<size_t>(a.history_ids[i])];
    logit = logit > 0 ? logit / a.repetition_penalty : logit * a.repetition_penalty;
    const auto count = static_cast<float>(a.history_counts[i]);
    if (count > 0) logit = logit - count * a.frequency_penalty - a.presence_penalty;
  }
  for (size_t i = 0; i < a.bias_ids.size(); ++i) {
    logits[static_cast<size_t>(a.bias_ids[i])] += a.biases[i];
  }
}

void keep_only(std::span<const int32_t> ids, std::span<float> logits) {
  std::vector<float> kept;
  kept.reserve(ids.size());
  for (const int32_t id : ids) kept.push_back(logits[static_cast<size_t>(id)]);
  std::fill(logits.begin(), logits.end(), kForbidden);
  for (size_t i = 0; i < ids.size(); ++i) logits[static_cast<size_t>(ids[i])] = kept[i];
}

void apply_mask(std::span<const uint32_t> mask, std::span<float> logits) {
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    const uint32_t word = mask[begin / 32];
    if (word == ~uint32_t{0}) continue;
    const size_t end = std::min(logits.size(), begin + 32);
    for (size_t i = begin; i < end; ++i) {
      if ((word >> (i - begin) & 1) == 0) logits[i] = kForbidden;
    }
  }
}

void check_ids(std::span<const int32_t> ids, int64_t vocab_size, const char* what) {
  for (const int32_t id : ids) {
    CHECK(id >= 0 && id < vocab_size, "{}: id {} of a vocabulary of {}", what, id, vocab_size);
  }
}

void check_row(const LogitAdjustment& a, int64_t vocab_size) {
  CHECK_EQ(a.history_ids.size(), a.history_counts.size(), "adjust_logits: history");
  CHECK_EQ(a.bias_ids.size(), a.biases.size(), "adjust_logits: biases");
  CHECK(a.mask.empty() || static_cast<int64_t>(a.mask.size()) * 32 >= vocab_size,
        "adjust_logits: a mask of {} words for {} ids", a.mask.size(), vocab_size);
  check_ids(a.history_ids, vocab_size, "history");
  check_ids(a.bias_ids, vocab_size, "logit bias");
  check_ids(a.allowed_ids, vocab_size, "allowed ids");
  check_ids(a.banned_ids, vocab_size, "banned ids");
}

// Returns whether nothing may be drawn. A NaN counts as something: the sampler reports it.
bool adjust_row(const LogitAdjustment& a, std::span<float> logits) {
  apply_penalties(a, logits);
  if (!a.allowed_ids.empty()) keep_only(a.allowed_ids, logits);
  for (const int32_t id : a.banned_ids) logits[static_cast<size_t>(id)] = kForbidden;
  if (!a.mask.empty()) apply_mask(a.mask, logits);
  if (a.allowed_ids.empty() && a.banned_ids.empty() && a.mask.empty()) return false;
  return std::all_of(logits.begin(), logits.end(), [](float logit) { return logit == kForbidden; });
}

}  // namespace

void adjust_logits(Stream& stream, const LogitAdjustmentArgs& args) {
  ShapeCheck s("adjust_logits");
  s("logits", args.logits, {DType::kFp32}, {"num_rows", "padded_vocab"});
  s("out", args.out, {DType::kFp32}, {"num_rows", "padded_vocab"});
  CHECK(args.vocab_size >= 1 && args.vocab_size <= s["padded_vocab"], "vocab_size={} of {} columns",
        args.vocab_size, s["padded_vocab"]);
  const int64_t num_rows = s["num_rows"];
  for (int64_t row = 0; row < num_rows; ++row) {
    if (args.rows[row] != nullptr) check_row(*args.rows[row], args.vocab_size);
  }
  BRIAR_RETURN_IF_CUDA(adjust_logits, stream, args);
  auto task = [&](int64_t row) {
    const float* from = args.logits.ptr<float>() + row * args.logits.stride(0);
    float* to = args.out.ptr<float>() + row * args.out.stride(0);
    std::copy_n(from, args.vocab_size, to);
    const LogitAdjustment* adjustment = args.rows[row];
    args.is_empty[row] = adjustment != nullptr &&
                         adjust_row(*adjustment, {to, static_cast<size_t>(args.vocab_size)});
  };
  cpu_thread_pool(stream).run(num_rows, task);
}

}  // namespace briar

#include "kernels/sampling/logprobs.h"

#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/sampling/softmax_cpu.h"

namespace briar {

BRIAR_DECLARE_CUDA_KERNEL(void logprobs(Stream& stream, const LogprobsArgs& args))
namespace {

void row_logprobs(const LogprobsArgs& a, int64_t row) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float* logits = a.logits.ptr<float>() + row * a.logits.stride(0);
  const int32_t chosen = a.chosen.ptr<int32_t>()[row];
  const RowPeak peak = BRIAR_CALL_CPU_KERNEL(row_peak, logits, a.vocab_size);
  const double sum =
      peak.has_nan ? 0
                   : BRIAR_CALL_CPU_KERNEL(exp_row, logits, a.vocab_size, peak.max, 1.f, nullptr);
  const double lse = peak.has_nan ? static_cast<double>(kNan) : peak.max + std::log(sum);
  const bool is_id = chosen >= 0 && chosen < a.vocab_size;
  a.chosen_logprobs.ptr<float>()[row] = is_id ? static_cast<float>(logits[chosen] - lse) : kNan;
  if (!a.top_ids) return;
  const auto num_top = static_cast<int32_t>(a.top_ids.size(1));
  int32_t* ids = a.top_ids.ptr<int32_t>() + row * a.top_ids.stride(0);
  float* values = a.top_logprobs.ptr<float>() + row * a.top_logprobs.stride(0);
  if (peak.has_nan) {
    for (int32_t i = 0; i < num_top; ++i) ids[i] = -1, values[i] = kNan;
    return;
  }
  BRIAR_CALL_CPU_KERNEL(top_of_row, logits, a.vocab_size, num_top, ids, values);
  for (int32_t i = 0; i < num_top; ++i) values[i] = static_cast<float>(values[i] - lse);
}

}  // namespace

void logprobs(Stream& stream, const LogprobsArgs& a) {
  ShapeCheck s("logprobs");
  s("logits", a.logits, {DType::kFp32}, {"num_rows", "padded_vocab"});
  s("chosen", a.chosen, {DType::kInt32}, {"num_rows"});
  s("chosen_logprobs", a.chosen_logprobs, {DType::kFp32}, {"num_rows"});
  CHECK(a.vocab_size >= 1 && a.vocab_size <= s["padded_vocab"], "vocab_size={} of {} columns",
        a.vocab_size, s["padded_vocab"]);
  if (a.top_ids) {
    s("top_ids", a.top_ids, {DType::kInt32}, {"num_rows", "num_top"});
    s("top_logprobs", a.top_logprobs, {DType::kFp32}, {"num_rows", "num_top"});
    CHECK_LE(s["num_top"], a.vocab_size, "num_top");
  }
  BRIAR_RETURN_IF_CUDA(logprobs, stream, a);
  auto task = [&](int64_t row) { row_logprobs(a, row); };
  cpu_thread_pool(stream).run(s["num_rows"], task);
}

}  // namespace briar

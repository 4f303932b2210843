// log softmax of the chosen id, and of the likeliest ids one after the other: a block a row, which
// passes over it 2 + num_top times. Bound by what one multiprocessor can read: the row comes from
// DRAM once and from L2 after that.
#include "kernels/sampling/logprobs.h"
#include "kernels/sampling/row_sm90.cuh"

namespace briar::sm90 {
namespace {

struct Params {
  const float* logits;
  const int32_t* chosen;
  float* chosen_logprobs;
  int32_t* top_ids;
  float* top_logprobs;
  int64_t vocab_size, logits_stride, ids_stride, logprobs_stride;
  int num_top;
};

__global__ void __launch_bounds__(kRowThreads, 1) logprobs_kernel(Params p) {
  __shared__ uint64_t keys[kRowWarps];
  __shared__ double sums[kRowWarps];
  wait_for_previous_kernel();
  const int64_t r = blockIdx.x;
  const float* row = p.logits + r * p.logits_stride;
  uint64_t best = best_of_row(row, p.vocab_size, ~uint64_t{0}, keys);
  const bool has_nan = is_nan_key(best);
  const float largest = row[id_of_key(best)];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < p.vocab_size; i += kRowThreads) {
    sum += static_cast<double>(expf(row[i] - largest));
  }
  const double lse = largest + log(block_total(sum, sums));
  if (threadIdx.x == 0) {
    const int32_t id = p.chosen[r];
    const bool is_id = id >= 0 && id < p.vocab_size;
    p.chosen_logprobs[r] = is_id ? static_cast<float>(row[id] - lse) : NAN;
  }
  for (int i = 0; i < p.num_top; ++i) {
    if (threadIdx.x == 0) {
      const auto id = static_cast<int32_t>(id_of_key(best));
      p.top_ids[r * p.ids_stride + i] = has_nan ? -1 : id;
      p.top_logprobs[r * p.logprobs_stride + i] = has_nan ? NAN : static_cast<float>(row[id] - lse);
    }
    if (!has_nan && i + 1 < p.num_top) best = best_of_row(row, p.vocab_size, best, keys);
  }
}

}  // namespace

void logprobs(Stream& stream, const LogprobsArgs& a) {
  launch(stream, "logprobs", logprobs_kernel,
         {.grid = dim3(static_cast<unsigned>(a.chosen.size(0))), .block = dim3(kRowThreads)},
         Params{.logits = a.logits.ptr<float>(),
                .chosen = a.chosen.ptr<int32_t>(),
                .chosen_logprobs = a.chosen_logprobs.ptr<float>(),
                .top_ids = a.top_ids ? a.top_ids.ptr<int32_t>() : nullptr,
                .top_logprobs = a.top_ids ? a.top_logprobs.ptr<float>() : nullptr,
                .vocab_size = a.vocab_size,
                .logits_stride = a.logits.stride(0),
                .ids_stride = a.top_ids ? a.top_ids.stride(0) : 0,
                .logprobs_stride = a.top_ids ? a.top_logprobs.stride(0) : 0,
                .num_top = a.top_ids ? static_cast<int>(a.top_ids.size(1)) : 0});
}

}  // namespace briar::sm90

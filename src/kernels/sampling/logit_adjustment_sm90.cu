// Penalties, biases and what may not be drawn, as logit_adjustment.h defines them. Bound by what
// one multiprocessor can read (a block a row): a row of logits is read and written once, what its
// request asks for is read once.
//
// The host packs what all rows ask for into one copy. Allowed ids, banned ids and the constraint's
// mask become one mask there, and the kernel needs no order among them.
#include "kernels/cuda/common.cuh"
#include "kernels/sampling/logit_adjustment_sm90.h"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 1024;

struct Params {
  const float* logits;
  float* out;
  const PackedAdjustment* rows;
  const uint32_t* words;
  bool* is_empty;
  int64_t vocab_size, logits_stride, out_stride;
};

__device__ void apply_penalties(const PackedAdjustment& row, const uint32_t* words, float* logits) {
  const auto* ids = reinterpret_cast<const int32_t*>(words + row.history_ids);
  const auto* counts = reinterpret_cast<const int32_t*>(words + row.history_counts);
  for (int i = static_cast<int>(threadIdx.x); i < row.num_history; i += kThreads) {
    float logit = logits[ids[i]];
    logit = logit > 0.f ? logit / row.repetition_penalty : logit * row.repetition_penalty;
    const auto count = static_cast<float>(counts[i]);
    if (count > 0.f) logit = logit - count * row.frequency_penalty - row.presence_penalty;
    logits[ids[i]] = logit;
  }
  __syncthreads();
  const auto* bias_ids = reinterpret_cast<const int32_t*>(words + row.bias_ids);
  const auto* biases = reinterpret_cast<const float*>(words + row.biases);
  for (int i = static_cast<int>(threadIdx.x); i < row.num_biases; i += kThreads) {
    logits[bias_ids[i]] += biases[i];
  }
}

// One block a row. A NaN counts as something that may be drawn: the sampler reports it.
__global__ void __launch_bounds__(kThreads, 1) adjust_logits_kernel(Params p) {
  wait_for_previous_kernel();
  const PackedAdjustment row = p.rows[blockIdx.x];
  const float* from = p.logits + row.row * p.logits_stride;
  float* to = p.out + row.row * p.out_stride;
  for (int64_t i = threadIdx.x; i < p.vocab_size; i += kThreads) to[i] = from[i];
  __syncthreads();
  apply_penalties(row, p.words, to);
  __syncthreads();
  bool has_any = !row.has_mask;
  if (row.has_mask) {
    for (int64_t i = threadIdx.x; i < p.vocab_size; i += kThreads) {
      const bool is_allowed = (p.words[row.mask + i / 32] >> (i % 32) & 1) != 0;
      if (!is_allowed) to[i] = -INFINITY;
      has_any |= to[i] != -INFINITY;
    }
  }
  has_any = __syncthreads_or(has_any);
  if (threadIdx.x == 0) p.is_empty[row.row] = !has_any;
}

}  // namespace

void adjust_logits(Stream& stream, const LogitAdjustmentArgs& a) {
  const int64_t num_rows = a.logits.size(0);
  for (int64_t row = 0; row < num_rows;) {
    const PackedAdjustments packed = pack_adjustments(a, row, kCudaScratchBytes);
    const auto rows_bytes = static_cast<int64_t>(packed.rows.size() * sizeof(PackedAdjustment));
    const auto words_bytes = static_cast<int64_t>(packed.words.size() * sizeof(uint32_t));
    auto* scratch = static_cast<char*>(cuda_scratch(stream, rows_bytes + words_bytes));
    // Pageable memory: copy() has read it when it returns.
    stream.copy(scratch, packed.rows.data(), rows_bytes);
    if (words_bytes > 0) stream.copy(scratch + rows_bytes, packed.words.data(), words_bytes);
    launch(stream, "adjust_logits", adjust_logits_kernel,
           {.grid = dim3(static_cast<unsigned>(packed.rows.size())), .block = dim3(kThreads)},
           Params{.logits = a.logits.ptr<float>(),
                  .out = a.out.ptr<float>(),
                  .rows = reinterpret_cast<const PackedAdjustment*>(scratch),
                  .words = reinterpret_cast<const uint32_t*>(scratch + rows_bytes),
                  .is_empty = a.is_empty,
                  .vocab_size = a.vocab_size,
                  .logits_stride = a.logits.stride(0),
                  .out_stride = a.out.stride(0)});
    row += static_cast<int64_t>(packed.rows.size());
  }
}

}  // namespace briar::sm90

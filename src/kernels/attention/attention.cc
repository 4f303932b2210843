#include "kernels/attention/attention.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void attention(ThreadPool& pool, const AttentionArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void attention(Stream& stream, const AttentionArgs& args))

namespace {

// The page table is data from the engine: a wrong entry inside the visible range would read another
// sequence's memory without a trace.
void check_sequences(const AttentionArgs& a) {
  const auto* cu = a.cu_seqlens_q.ptr<int32_t>();
  const auto* lens = a.seq_lens.ptr<int32_t>();
  const auto* table = a.page_table.ptr<int32_t>();
  const int64_t page_size = a.k_cache.size(1);
  CHECK_EQ(cu[0], 0, "cu_seqlens_q starts at 0");
  for (int64_t s = 0; s < a.seq_lens.size(0); ++s) {
    const int64_t num_new = cu[s + 1] - cu[s];
    CHECK(num_new >= 0 && num_new <= lens[s], "sequence {}: {} new tokens of {}", s, num_new,
          lens[s]);
    if (num_new == 0) continue;
    const int64_t oldest = lens[s] - num_new;
    const int64_t first = a.window == 0 ? 0 : std::max<int64_t>(0, oldest - a.window + 1);
    CHECK_LE(lens[s], a.page_table.size(1) * page_size, "sequence {}: pages in its table", s);
    for (int64_t p = first / page_size; p * page_size < lens[s]; ++p) {
      const int32_t page_id = table[s * a.page_table.stride(0) + p];
      CHECK(page_id >= 0 && page_id < a.k_cache.size(0),
            "sequence {}: page_table[{}] = {} of {} pages", s, p, page_id, a.k_cache.size(0));
    }
  }
  CHECK_EQ(static_cast<int64_t>(cu[a.seq_lens.size(0)]), a.q.size(0), "tokens of all sequences");
}

}  // namespace

void attention(Stream& stream, const AttentionArgs& a) {
  ShapeCheck s("attention");
  s("q", a.q, {DType::kFp32, DType::kBf16}, {"num_tokens", "num_q_heads", "head_dim"});
  s("out", a.out, {a.q.dtype()}, {"num_tokens", "num_q_heads", "head_dim"});
  s("k_cache", a.k_cache, {DType::kFp32, DType::kBf16},
    {"num_pages", "page_size", "num_kv_heads", "head_dim"});
  s("v_cache", a.v_cache, {a.k_cache.dtype()},
    {"num_pages", "page_size", "num_kv_heads", "head_dim"});
  s("page_table", a.page_table, {DType::kInt32}, {"num_seqs", "max_pages"});
  s("seq_lens", a.seq_lens, {DType::kInt32}, {"num_seqs"});
  s("cu_seqlens_q", a.cu_seqlens_q, {DType::kInt32}, {s["num_seqs"] + 1});
  if (a.sinks) s("sinks", a.sinks, {DType::kFp32}, {"num_q_heads"});
  CHECK_EQ(s["num_q_heads"] % s["num_kv_heads"], 0,
           "num_q_heads={} must be a multiple of num_kv_heads={}", s["num_q_heads"],
           s["num_kv_heads"]);
  CHECK_GE(a.window, 0, "window");
  CHECK_LE(s["head_dim"], 256, "head_dim");
  CHECK(a.k_cache.is_contiguous() && a.v_cache.is_contiguous(), "the KV cache must be contiguous");
  BRIAR_RETURN_IF_CUDA(attention, stream, a);
  check_sequences(a);
  BRIAR_CALL_CPU_KERNEL(attention, cpu_thread_pool(stream), a);
}

}  // namespace briar

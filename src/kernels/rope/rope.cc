#include "kernels/rope/rope.h"

#include <cmath>

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cuda/dispatch.h"

namespace briar {

BRIAR_DECLARE_CPU_KERNEL(void rope_kv_write(ThreadPool& pool, const RopeKvWriteArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void rope_table(Stream& stream, const RopeTableArgs& args))
BRIAR_DECLARE_CUDA_KERNEL(void rope_kv_write(Stream& stream, const RopeKvWriteArgs& args))

void rope_table(Stream& stream, const RopeTableArgs& a) {
  ShapeCheck s("rope_table");
  const int64_t num_pairs = static_cast<int64_t>(a.inv_frequencies.size());
  s("positions", a.positions, {DType::kInt32}, {"num_tokens"});
  s("cos_sin", a.cos_sin, {DType::kFp32}, {"num_tokens", 2 * num_pairs});
  BRIAR_RETURN_IF_CUDA(rope_table, stream, a);
  const auto* positions = a.positions.ptr<int32_t>();
  auto* table = a.cos_sin.ptr<float>();
  cpu_thread_pool(stream).for_ranges(s["num_tokens"], 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = table + i * a.cos_sin.stride(0);
      for (int64_t j = 0; j < num_pairs; ++j) {
        const float angle =
            static_cast<float>(positions[i]) * a.inv_frequencies[static_cast<size_t>(j)];
        row[j] = static_cast<float>(std::cos(double{angle}) * a.attention_factor);
        row[num_pairs + j] = static_cast<float>(std::sin(double{angle}) * a.attention_factor);
      }
    }
  });
}

void rope_kv_write(Stream& stream, const RopeKvWriteArgs& a) {
  ShapeCheck s("rope_kv_write");
  s("q", a.q, {DType::kFp32, DType::kBf16}, {"num_tokens", "num_q_heads", "head_dim"});
  s("k_cache", a.k_cache, {DType::kFp32, DType::kBf16},
    {"num_pages", "page_size", "num_kv_heads", "head_dim"});
  s("v_cache", a.v_cache, {a.k_cache.dtype()},
    {"num_pages", "page_size", "num_kv_heads", "head_dim"});
  s("cos_sin", a.cos_sin, {DType::kFp32}, {"num_tokens", "head_dim"});
  s("slots", a.slots, {DType::kInt32}, {"num_tokens"});
  const int64_t width = (s["num_q_heads"] + 2 * s["num_kv_heads"]) * s["head_dim"];
  s("qkv", a.qkv, {DType::kFp32}, {"num_tokens", width});
  CHECK_EQ(bool{a.q_norm}, bool{a.k_norm}, "q_norm and k_norm come together");
  if (a.q_norm) {
    s("q_norm", a.q_norm, {DType::kFp32, DType::kBf16}, {"head_dim"});
    s("k_norm", a.k_norm, {a.q_norm.dtype()}, {"head_dim"});
    CHECK_LE(s["head_dim"], kMaxNormedHeadDim, "head_dim of normalised heads");
  }
  CHECK(a.k_cache.is_contiguous() && a.v_cache.is_contiguous(), "the KV cache must be contiguous");
  CHECK_EQ(s["head_dim"] % 2, 0, "rotary pairs");
  BRIAR_RETURN_IF_CUDA(rope_kv_write, stream, a);
  const auto* slots = a.slots.ptr<int32_t>();
  for (int64_t i = 0; i < s["num_tokens"]; ++i) {
    CHECK(slots[i] >= 0 && slots[i] < s["num_pages"] * s["page_size"],
          "slots[{}] = {} of {} pages of {}", i, slots[i], s["num_pages"], s["page_size"]);
  }
  BRIAR_CALL_CPU_KERNEL(rope_kv_write, cpu_thread_pool(stream), a);
}

}  // namespace briar

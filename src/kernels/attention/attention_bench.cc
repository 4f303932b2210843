// Attention at gpt-oss's shape: 64 query heads, 8 KV heads of 64. Decode is bound by reading K and
// V once (GB/s), prefill by the products (GFLOP/s of the visible pairs: 4 head_dim a query head).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

constexpr int64_t kQHeads = 64, kKvHeads = 8, kDim = 64, kPage = 16;

struct Case {
  int64_t num_seqs, queries, context, window;
};

struct Tensors {
  explicit Tensors(const Case& c)
      : pages_a_seq((c.context + kPage - 1) / kPage),
        q(DType::kBf16, {c.num_seqs * c.queries, kQHeads, kDim}),
        k(DType::kBf16, {c.num_seqs * pages_a_seq, kPage, kKvHeads, kDim}),
        v(DType::kBf16, {c.num_seqs * pages_a_seq, kPage, kKvHeads, kDim}),
        table(DType::kInt32, {c.num_seqs, pages_a_seq}),
        cu_seqlens(DType::kInt32, {c.num_seqs + 1}),
        seq_lens(DType::kInt32, {c.num_seqs}),
        sinks(DType::kFp32, {kQHeads}),
        out(DType::kBf16, {c.num_seqs * c.queries, kQHeads, kDim}) {
    fill_random(q, 1);
    fill_random(k, 2);
    fill_random(v, 3);
    fill_random(sinks, 4);
    for (int64_t i = 0; i < table.size(); ++i) table.set(i, static_cast<double>(i));
    for (int64_t i = 0; i <= c.num_seqs; ++i) cu_seqlens.set(i, static_cast<double>(i * c.queries));
    for (int64_t i = 0; i < c.num_seqs; ++i) seq_lens.set(i, static_cast<double>(c.context));
  }
  int64_t pages_a_seq;
  TestTensor q, k, v, table, cu_seqlens, seq_lens, sinks, out;
};

// Keys that the query at a position sees.
int64_t num_visible(const Case& c, int64_t position) {
  return c.window > 0 ? std::min(c.window, position + 1) : position + 1;
}

void bm_attention(benchmark::State& state) {
  const Case c{state.range(0), state.range(1), state.range(2), state.range(3)};
  const auto device = make_cpu_device(static_cast<int>(state.range(4)));
  const auto stream = device->make_stream();
  const Tensors t(c);
  const AttentionArgs args{t.q.view(),
                           t.k.view(),
                           t.v.view(),
                           t.table.view(),
                           t.cu_seqlens.view(),
                           t.seq_lens.view(),
                           t.sinks.view(),
                           t.out.view(),
                           1.f / std::sqrt(static_cast<float>(kDim)),
                           static_cast<int>(c.window)};
  attention(*stream, args);
  const auto before = t.out.bits();
  for (auto _ : state) attention(*stream, args);
  if (t.out.bits() != before) state.SkipWithError("other bits than before");
  int64_t pairs = 0;
  for (int64_t i = 0; i < c.queries; ++i) pairs += num_visible(c, c.context - c.queries + i);
  const int64_t keys = c.window > 0 ? std::min(c.context, c.window + c.queries - 1) : c.context;
  state.counters["GFLOP/s"] =
      benchmark::Counter(4e-9 * static_cast<double>(c.num_seqs * pairs * kQHeads * kDim),
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      benchmark::Counter(4e-9 * static_cast<double>(c.num_seqs * keys * kKvHeads * kDim),
                         benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(bm_attention)
    ->ArgNames({"seqs", "queries", "context", "window", "threads"})
    ->Args({1, 1, 1024, 0, 1})  // decode
    ->Args({1, 1, 16384, 0, 1})
    ->Args({1, 1, 16384, 0, 2})
    ->Args({1, 1, 16384, 128, 1})
    ->Args({16, 1, 2048, 0, 2})
    ->Args({1, 512, 512, 0, 1})  // prefill
    ->Args({1, 512, 512, 0, 2})
    ->Args({1, 512, 4096, 0, 2})
    ->Args({1, 512, 4096, 128, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace briar

// One draw from the largest vocabulary. The floor is reading the logits once.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/sampling/sampler.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

constexpr int64_t kVocab = 201088;

// `spread` is the standard deviation of the logits: 4 is peaked as a language model is, 1 is flat,
// the worst case of the filters that sort.
void bm_sampler(benchmark::State& state, SamplingRow row, double spread) {
  const int64_t num_rows = state.range(0);
  const auto device = make_cpu_device(static_cast<int>(state.range(1)));
  const auto stream = device->make_stream();
  TestTensor logits(DType::kFp32, {num_rows, kVocab}), ids(DType::kInt32, {num_rows});
  fill_random(logits, 1, spread);
  row.random.seed = 3;
  const std::vector<SamplingRow> rows(static_cast<size_t>(num_rows), row);
  const SamplerArgs args{logits.view(), kVocab, rows.data(), ids.view()};
  sampler(*stream, args);
  const auto before = ids.ints();
  for (auto _ : state) sampler(*stream, args);
  if (ids.ints() != before) state.SkipWithError("other tokens than before");
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(logits.view().num_bytes()) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

#define BRIAR_BENCH_SAMPLER(name, spread, ...)                          \
  BENCHMARK_CAPTURE(bm_sampler, name, SamplingRow(__VA_ARGS__), spread) \
      ->ArgNames({"rows", "threads"})                                   \
      ->Args({1, 1})                                                    \
      ->Args({8, 2})                                                    \
      ->UseRealTime()                                                   \
      ->Unit(benchmark::kMicrosecond)

BRIAR_BENCH_SAMPLER(greedy, 4, {});
BRIAR_BENCH_SAMPLER(temperature, 4, {.temperature = 1});
BRIAR_BENCH_SAMPLER(top_k, 4, {.temperature = 1, .top_k = 50});
BRIAR_BENCH_SAMPLER(top_p, 4, {.temperature = 1, .top_p = 0.95f});
BRIAR_BENCH_SAMPLER(min_p, 4, {.temperature = 1, .min_p = 0.05f});
BRIAR_BENCH_SAMPLER(top_p_flat, 1, {.temperature = 1, .top_p = 0.9f});

}  // namespace
}  // namespace briar

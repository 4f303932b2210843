// The experts of one decode step of gpt-oss: few rows, spread over 32 experts. Bound by reading the
// weights of the experts that were chosen.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

#include "kernels/moe/grouped_linear.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

constexpr int64_t kExperts = 32, kChoices = 4, kOut = 5760, kIn = 2880;

// Rows [offsets[e], offsets[e + 1]) of the experts' choices, spread as evenly as they go.
TestTensor row_offsets(int64_t num_rows) {
  TestTensor offsets(DType::kInt32, {kExperts + 1});
  for (int64_t e = 0; e <= kExperts; ++e) {
    offsets.set(e, static_cast<double>((e * num_rows + kExperts - 1) / kExperts));
  }
  return offsets;
}

void bm_grouped_linear(benchmark::State& state) {
  const int64_t num_tokens = state.range(0), num_rows = num_tokens * kChoices;
  const auto dtype = static_cast<DType>(state.range(1));
  const auto device = make_cpu_device(static_cast<int>(state.range(2)));
  const auto stream = device->make_stream();
  // All experts' weights exceed the caches, as a model's layers do.
  const Buffer weights(*device, dtype_bytes(dtype, kExperts * kOut * kIn));
  auto* words = static_cast<uint32_t*>(weights.data());
  for (int64_t i = 0; i < weights.num_bytes() / 4; ++i) {
    const auto bits = static_cast<uint32_t>(random_bits(1, static_cast<uint64_t>(i)));
    words[i] = dtype == DType::kMxfp4 ? bits : (bits & 0x807f807fu) | 0x3d803d80u;  // +-[1, 2) / 16
  }
  TestTensor scales(DType::kUint8, {kExperts, kOut, kIn / 32}), x(DType::kBf16, {num_tokens, kIn}),
      row_index(DType::kInt32, {num_rows}), out(DType::kBf16, {num_rows, kOut});
  std::memset(scales.view().data(), 122, static_cast<size_t>(scales.size()));
  fill_random(x, 2);
  for (int64_t i = 0; i < num_rows; ++i) row_index.set(i, static_cast<double>(i % num_tokens));
  const TestTensor offsets = row_offsets(num_rows);
  const GroupedLinearArgs args{x.view(),
                               row_index.view(),
                               offsets.view(),
                               TensorView(weights.data(), dtype, {kExperts, kOut, kIn}),
                               dtype == DType::kMxfp4 ? scales.view() : TensorView(),
                               TensorView(),
                               out.view()};
  grouped_linear(*stream, args);
  const auto before = out.bits();
  for (auto _ : state) grouped_linear(*stream, args);
  if (out.bits() != before) state.SkipWithError("other bits than before");
  const int64_t weights_read = std::min(num_rows, kExperts) * kOut * kIn;
  const int64_t bytes =
      dtype_bytes(dtype, weights_read) + (dtype == DType::kMxfp4 ? weights_read / 32 : 0);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(num_rows * kOut * kIn),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

constexpr int64_t kBf16 = static_cast<int64_t>(DType::kBf16),
                  kMxfp4 = static_cast<int64_t>(DType::kMxfp4);

BENCHMARK(bm_grouped_linear)
    ->ArgNames({"tokens", "dtype", "threads"})
    ->Args({1, kMxfp4, 1})
    ->Args({1, kMxfp4, 2})
    ->Args({1, kBf16, 2})
    ->Args({8, kMxfp4, 2})
    ->Args({32, kMxfp4, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace briar

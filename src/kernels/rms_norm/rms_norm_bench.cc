// Residual add and norm: bound by reading x and the residual and writing the residual and out.
#include <benchmark/benchmark.h>

#include "kernels/rms_norm/rms_norm.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

void bm_rms_norm(benchmark::State& state) {
  const int64_t num_tokens = state.range(0), hidden_size = state.range(1);
  const auto device = make_cpu_device(static_cast<int>(state.range(2)));
  const auto stream = device->make_stream();
  TestTensor x(DType::kFp32, {num_tokens, hidden_size}),
      residual(DType::kFp32, {num_tokens, hidden_size}), weight(DType::kBf16, {hidden_size}),
      out(DType::kBf16, {num_tokens, hidden_size});
  fill_random(x, 1, 0);  // zeros: the residual stays what it is however often the loop runs
  fill_random(residual, 2);
  fill_random(weight, 3);
  const RmsNormArgs args{x.view(), residual.view(), weight.view(), TensorView(), out.view(), 1e-5f};
  rms_norm(*stream, args);
  const auto before = out.bits();
  for (auto _ : state) rms_norm(*stream, args);
  if (out.bits() != before) state.SkipWithError("other bits than before");
  const int64_t bytes =
      x.view().num_bytes() + 2 * residual.view().num_bytes() + out.view().num_bytes();
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(bm_rms_norm)
    ->ArgNames({"tokens", "hidden", "threads"})
    ->Args({1, 2880, 1})
    ->Args({32, 2880, 1})
    ->Args({512, 2880, 1})
    ->Args({512, 2880, 2})
    ->Args({8192, 2880, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace briar

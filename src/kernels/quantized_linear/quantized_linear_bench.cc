// The products of SmolLM2-135M at decode and prefill, beside the floor (bytes of weights at
// streaming-read bandwidth, as linear_bench measures it), and every format at one large shape.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "device/device.h"
#include "kernels/quantized_linear/layout.h"
#include "kernels/quantized_linear/quantized_linear.h"

namespace briar {
namespace {

struct Shape {
  int64_t n, k;
  BlockFormat format;
  int count;
};

// One token's products: 30 layers, then the tied head. Different memory for each, as in the model.
constexpr Shape kSmolLm2[] = {{960, 576, BlockFormat::kQ4_1, 30},
                              {576, 576, BlockFormat::kQ4_1, 30},
                              {3072, 576, BlockFormat::kQ4_1, 30},
                              {576, 1536, BlockFormat::kQ4_1, 30},
                              {49152, 576, BlockFormat::kQ8_0, 1}};

struct Model {
  explicit Model(int threads) : device(make_cpu_device(threads)), stream(device->make_stream()) {
    for (const Shape& s : kSmolLm2) {
      for (int i = 0; i < s.count; ++i) {
        Buffer& buffer = weights.emplace_back(*device, packed_bytes({s.format, s.n, s.k}));
        // Any bytes are blocks; these make small finite scales.
        std::memset(buffer.data(), 0x1b, static_cast<size_t>(buffer.num_bytes()));
        num_bytes += buffer.num_bytes();
      }
    }
  }

  void forward(int64_t num_tokens, DType x_dtype, bool with_head) {
    const auto count = static_cast<size_t>(num_tokens * 3072);
    x.assign(count, 0.f);
    out.resize(std::max(count, size_t{49152}));
    size_t i = 0;
    for (const Shape& s : kSmolLm2) {
      const int64_t m = s.n == 49152 ? 1 : num_tokens;  // logits of the last token only
      if (s.n == 49152 && !with_head) break;
      for (int copy = 0; copy < s.count; ++copy, ++i) {
        quantized_linear(*stream,
                         {TensorView(x.data(), x_dtype, {m, s.k}),
                          TensorView(weights[i].data(), DType::kUint8, {weights[i].num_bytes()}),
                          s.format, TensorView(), TensorView(out.data(), DType::kFp32, {m, s.n})});
      }
    }
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<Buffer> weights;
  int64_t num_bytes = 0;
  std::vector<float> x, out;
};

void bm_smollm2(benchmark::State& state) {
  const int64_t num_tokens = state.range(0);
  Model model(static_cast<int>(state.range(2)));
  const auto dtype = static_cast<DType>(state.range(1));
  for (auto _ : state) model.forward(num_tokens, dtype, true);
  using benchmark::Counter;
  state.counters["tokens/s"] =
      Counter(static_cast<double>(num_tokens), Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      Counter(static_cast<double>(model.num_bytes) * 1e-9, Counter::kIsIterationInvariantRate);
}

constexpr auto kBf16 = static_cast<int64_t>(DType::kBf16);
constexpr auto kFp32 = static_cast<int64_t>(DType::kFp32);

BENCHMARK(bm_smollm2)
    ->ArgNames({"tokens", "x", "threads"})
    ->ArgsProduct({{1, 2, 4, 8, 12, 16, 24, 32, 512}, {kBf16, kFp32}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void bm_format(benchmark::State& state) {
  const auto format = static_cast<BlockFormat>(state.range(0));
  const int64_t m = state.range(1), n = 4096, k = 4096, copies = 16;
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  const int64_t bytes = packed_bytes({format, n, k});
  std::vector<uint8_t> weight(static_cast<size_t>(bytes * copies), 0x11);
  std::vector<Bf16> x(static_cast<size_t>(m * k), to_bf16(0.5f));
  std::vector<float> out(static_cast<size_t>(m * n));
  int64_t i = 0;
  for (auto _ : state) {
    uint8_t* data = weight.data() + i++ % copies * bytes;
    quantized_linear(*stream, {TensorView(x.data(), DType::kBf16, {m, k}),
                               TensorView(data, DType::kUint8, {bytes}), format, TensorView(),
                               TensorView(out.data(), DType::kFp32, {m, n})});
  }
  state.SetLabel(to_string(format));
  using benchmark::Counter;
  state.counters["GB/s"] =
      Counter(static_cast<double>(bytes) * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] =
      Counter(2e-9 * static_cast<double>(m * n * k), Counter::kIsIterationInvariantRate);
}
BENCHMARK(bm_format)
    ->ArgNames({"format", "tokens"})
    ->ArgsProduct({{0, 1, 2, 3, 4}, {1, 256}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace briar

// The matrix product at decode and prefill shapes, beside the floor (bytes of weights at
// streaming-read bandwidth, measured here as well) and, where it is installed, oneDNN.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "device/device.h"
#include "kernels/linear/linear.h"

#if defined(BRIAR_HAS_DNNL)
#include <dnnl.hpp>
#endif

namespace briar {
namespace {

// Weights several times larger than the last-level cache, so that a step finds them in memory as a
// model's would be.
struct Case {
  Case(int64_t m, int64_t n, int64_t k, DType dtype, int threads)
      : device(make_cpu_device(threads)), stream(device->make_stream()) {
    const int64_t weight_bytes = dtype_bytes(dtype, n * k);
    copies = std::max<int64_t>(1, (int64_t{192} << 20) / weight_bytes);
    weights = Buffer(*device, copies * weight_bytes);
    scales.assign(static_cast<size_t>(n * k / 32 + 1), 126);
    std::mt19937 random(1);
    auto* bytes = static_cast<uint8_t*>(weights.data());
    if (dtype == DType::kMxfp4) {
      for (int64_t i = 0; i < copies * weight_bytes; ++i) bytes[i] = static_cast<uint8_t>(random());
    } else {
      for (int64_t i = 0; i < copies * n * k; ++i) {
        const float value = static_cast<float>(random() % 2048) / 1024.f - 1.f;
        if (dtype == DType::kBf16) {
          static_cast<Bf16*>(weights.data())[i] = to_bf16(value);
        } else {
          static_cast<float*>(weights.data())[i] = value;
        }
      }
    }
    x.assign(static_cast<size_t>(m * k), to_bf16(0.5f));
    out.assign(static_cast<size_t>(m * n), 0.f);
    args.x = TensorView(x.data(), DType::kBf16, {m, k});
    args.out = TensorView(out.data(), DType::kFp32, {m, n});
    if (dtype == DType::kMxfp4)
      args.weight_scales = TensorView(scales.data(), DType::kUint8, {n, k / 32});
  }

  void run(int64_t i, int64_t n, int64_t k, DType dtype) {
    char* data = static_cast<char*>(weights.data()) + i % copies * dtype_bytes(dtype, n * k);
    args.weight = TensorView(data, dtype, {n, k});
    linear(*stream, args);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Buffer weights;
  int64_t copies = 1;
  std::vector<uint8_t> scales;
  std::vector<Bf16> x;
  std::vector<float> out;
  LinearArgs args;
};

void count(benchmark::State& state, int64_t m, int64_t n, int64_t k, int64_t weight_bytes) {
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(weight_bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(m * n * k),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void bm_linear(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const auto dtype = static_cast<DType>(state.range(3));
  Case c(m, n, k, dtype, static_cast<int>(state.range(4)));
  int64_t i = 0;
  for (auto _ : state) c.run(i++, n, k, dtype);
  count(state, m, n, k, dtype_bytes(dtype, n * k) + (dtype == DType::kMxfp4 ? n * k / 32 : 0));
}

// What the memory gives when it is only read.
void bm_streaming_read(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr int64_t kWords = int64_t{64} << 20;
  std::vector<uint64_t> data(kWords, 1);
  std::vector<uint64_t> sums(1024);
  for (auto _ : state) {
    pool.for_ranges(kWords, kWords / 64, [&](int64_t begin, int64_t end) {
      uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
      for (int64_t i = begin; i < end; i += 8) {
        s0 += data[i], s1 += data[i + 1], s2 += data[i + 2], s3 += data[i + 3];
        s4 += data[i + 4], s5 += data[i + 5], s6 += data[i + 6], s7 += data[i + 7];
      }
      sums[static_cast<size_t>(begin * 64 / kWords)] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
    });
    benchmark::DoNotOptimize(sums.data());
  }
  state.counters["GB/s"] =
      benchmark::Counter(kWords * 8e-9, benchmark::Counter::kIsIterationInvariantRate);
}

constexpr int64_t kBf16 = static_cast<int64_t>(DType::kBf16),
                  kMxfp4 = static_cast<int64_t>(DType::kMxfp4);

BENCHMARK(bm_streaming_read)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(bm_linear)
    ->ArgNames({"m", "n", "k", "dtype", "threads"})
    ->Args({1, 201088, 192, kBf16, 1})
    ->Args({1, 201088, 192, kBf16, 2})
    ->Args({1, 5120, 2880, kBf16, 2})
    ->Args({1, 2880, 4096, kBf16, 2})
    ->Args({1, 5760, 2880, kMxfp4, 2})
    ->Args({32, 201088, 192, kBf16, 1})
    ->Args({32, 201088, 192, kBf16, 2})
    ->Args({256, 5120, 2880, kBf16, 2})
    ->Args({256, 5760, 2880, kMxfp4, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

#if defined(BRIAR_HAS_DNNL)
// oneDNN on the same shapes: its threads come from OMP_NUM_THREADS.
void bm_dnnl(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = state.range(3) == kBf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc x_desc({m, k}, type, memory::format_tag::ab);
  const memory::desc w_desc({k, n}, type,
                            memory::format_tag::ba);  // weights [n, k] as checkpoints store them
  const memory::desc out_desc({m, n}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc primitive(dnnl::matmul::desc(x_desc, w_desc, out_desc),
                                               engine);
  const memory x(x_desc, engine), w(w_desc, engine), out(out_desc, engine);
  std::memset(x.get_data_handle(), 0, x_desc.get_size());
  std::memset(w.get_data_handle(), 0, w_desc.get_size());
  dnnl::matmul matmul(primitive);
  for (auto _ : state) {
    matmul.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, out}});
    stream.wait();
  }
  count(state, m, n, k, static_cast<int64_t>(w_desc.get_size()));
}
BENCHMARK(bm_dnnl)
    ->ArgNames({"m", "n", "k", "dtype"})
    ->Args({1, 201088, 192, kBf16})
    ->Args({32, 201088, 192, kBf16})
    ->Args({32, 201088, 192, 0})
    ->Args({256, 5120, 2880, kBf16})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
#endif

}  // namespace
}  // namespace briar

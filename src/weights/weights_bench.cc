// How fast weights reach the arena: bytes of the file a second, the file in the page cache.
#include <benchmark/benchmark.h>

#include "weights/sample_files.h"
#include "weights/weight_loader.h"

namespace briar {
namespace {

// As large as the embedding of a small model with a large vocabulary: 77 MB of bf16.
constexpr int64_t kRows = 201088, kColumns = 192;

void set_rate(benchmark::State& state, int64_t num_bytes) {
  state.SetBytesProcessed(state.iterations() * num_bytes);
}

void BM_load_dense(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  TempFolder folder;
  folder.write("model.safetensors",
               SafetensorsBuilder()
                   .add("w", "BF16", fmt::format("[{},{}]", kRows, kColumns),
                        std::vector<uint16_t>(static_cast<size_t>(kRows * kColumns), 0x3f80))
                   .text());
  const auto device = make_cpu_device(static_cast<int>(state.range(1)));
  const auto stream = device->make_stream();
  for (auto _ : state) {
    // Opening is part of it: a fresh mapping takes its page faults again.
    const auto checkpoint = Checkpoint::open(folder.path());
    Arena arena(*device, Arena::footprint(dtype, kRows * kColumns), "weights");
    WeightLoader load = WeightLoader::load(**checkpoint, arena, *stream);
    benchmark::DoNotOptimize(load.dense("w", {kRows, kColumns}, dtype).data());
  }
  set_rate(state, kRows * kColumns * 2);
}
BENCHMARK(BM_load_dense)
    ->ArgsProduct({{static_cast<int>(DType::kBf16), static_cast<int>(DType::kFp32)}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void BM_load_mxfp4(benchmark::State& state) {
  const auto dtype = static_cast<DType>(state.range(0));
  constexpr int64_t kExperts = 32, kExpertRows = 2880, kExpertColumns = 1440;
  constexpr size_t kBlocks = kExperts * kExpertRows * kExpertColumns / 32;
  TempFolder folder;
  folder.write("model.safetensors",
               SafetensorsBuilder()
                   .add("b", "U8", "[32,2880,45,16]", std::vector<uint8_t>(kBlocks * 16, 0x31))
                   .add("s", "U8", "[32,2880,45]", std::vector<uint8_t>(kBlocks, 120))
                   .text());
  const auto device = make_cpu_device(0);
  const auto stream = device->make_stream();
  for (auto _ : state) {
    const auto checkpoint = Checkpoint::open(folder.path());
    Arena arena(*device, int64_t{kBlocks} * 32 * 4 + 128, "weights");
    WeightLoader load = WeightLoader::load(**checkpoint, arena, *stream);
    const auto experts = load.mxfp4_experts("b", "s", kExperts, kExpertRows, kExpertColumns, dtype);
    benchmark::DoNotOptimize(experts.values.data());
  }
  set_rate(state, int64_t{kBlocks} * 17);
}
BENCHMARK(BM_load_mxfp4)
    ->Arg(static_cast<int>(DType::kMxfp4))
    ->Arg(static_cast<int>(DType::kBf16))
    ->Arg(static_cast<int>(DType::kFp32))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void BM_parse_header(benchmark::State& state) {
  SafetensorsBuilder builder;
  for (int i = 0; i < 10000; ++i) {
    builder.add(fmt::format("model.layers.{}.mlp.experts.gate_up_proj_blocks", i), "BF16", "[2,3]",
                std::vector<uint16_t>(6));
  }
  const std::string text = builder.text();
  for (auto _ : state) benchmark::DoNotOptimize(parse_safetensors(as_bytes(text), "f").ok());
}
BENCHMARK(BM_parse_header)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace briar

// What structured output costs: making the compiler, compiling, a mask, a token.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <random>

#include "formats/registry.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary_index.h"
#include "grammar/xgrammar_budget.h"

namespace briar {
namespace {

constexpr const char* kWeather =
    R"({"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]},
        "days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"]})";
constexpr const char* kFiveStrings =
    R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"string"},"minItems":5,
        "maxItems":5}},"required":["items"],"additionalProperties":false})";

std::shared_ptr<const Tokenizer> tokenizer() { return Tokenizer::bundled_o200k_harmony(); }
std::shared_ptr<const Format> harmony() { return *make_format("harmony", tokenizer()); }

ConstraintRequest request(int kind) {
  using Kind = AnswerGrammar::Kind;
  switch (kind) {
    case 0: return {};
    case 1: return {.answer = {.kind = Kind::kJsonObject}};
    case 2: return {.answer = {.kind = Kind::kJsonSchema, .source = kWeather}};
    default: return {.answer = {.kind = Kind::kJsonSchema, .source = kFiveStrings}};
  }
}

void make_compiler(benchmark::State& state) {
  const auto format = harmony();
  for (auto _ : state) {
    auto compiler = GrammarCompiler::create(format, tokenizer());
    benchmark::DoNotOptimize(compiler.ok());
  }
}
BENCHMARK(make_compiler)->Unit(benchmark::kMillisecond);

// Schemas that differ in their names, as different clients' do.
void compile_new_schema(benchmark::State& state) {
  auto compiler = std::move(*GrammarCompiler::create(harmony(), tokenizer()));
  int n = 0;
  for (auto _ : state) {
    const auto schema = fmt::format(
        R"({{"type":"object","properties":{{"city{}":{{"type":"string"}},"days":{{"type":"integer"}}}}}})",
        n++);
    auto constraint =
        compiler->compile({.answer = {.kind = AnswerGrammar::Kind::kJsonSchema, .source = schema}});
    benchmark::DoNotOptimize(constraint.ok());
  }
}
BENCHMARK(compile_new_schema)->Unit(benchmark::kMillisecond);

void compile_cached_schema(benchmark::State& state) {
  auto compiler = std::move(*GrammarCompiler::create(harmony(), tokenizer()));
  for (auto _ : state) benchmark::DoNotOptimize(compiler->compile(request(2)).ok());
}
BENCHMARK(compile_cached_schema)->Unit(benchmark::kMicrosecond);

int32_t draw(std::span<const uint32_t> mask, std::mt19937& random) {
  for (size_t word = random() % mask.size();; word = (word + 1) % mask.size()) {
    if (mask[word] != 0) return static_cast<int32_t>(word * 32) + std::countr_zero(mask[word]);
  }
}

// Processor time of masks and of accepted tokens, over turns of at most 60 tokens drawn at random.
void mask_and_accept(benchmark::State& state) {
  auto compiler = std::move(*GrammarCompiler::create(harmony(), tokenizer()));
  std::mt19937 random(5);
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  const auto opening = tokenizer()->encode_with_specials("<|channel|>final<|message|>");
  std::vector<double> masks;
  double accepts = 0;
  for (auto _ : state) {
    auto constraint = std::move(*compiler->compile(request(static_cast<int>(state.range(0)))));
    for (const int32_t id : opening) constraint->accept(id);
    for (int i = 0; i < 60 && !constraint->is_finished(); ++i) {
      const double begin = thread_seconds();
      constraint->fill_mask(mask);
      const double filled = thread_seconds();
      const int32_t id = draw(mask, random);
      const double drawn = thread_seconds();
      constraint->accept(id);
      accepts += 1e6 * (thread_seconds() - drawn);
      masks.push_back(1e6 * (filled - begin));
    }
  }
  std::sort(masks.begin(), masks.end());
  double sum = 0;
  for (const double mask_us : masks) sum += mask_us;
  const auto n = static_cast<double>(masks.size());
  state.counters["mask_mean_us"] = sum / n;
  state.counters["mask_p50_us"] = masks[masks.size() / 2];
  state.counters["mask_p99_us"] = masks[masks.size() * 99 / 100];
  state.counters["mask_max_us"] = masks.back();
  state.counters["accept_us"] = accepts / n;
}
BENCHMARK(mask_and_accept)
    ->ArgName("text_object_weather_strings")
    ->DenseRange(0, 3)
    ->Iterations(100);

}  // namespace
}  // namespace briar

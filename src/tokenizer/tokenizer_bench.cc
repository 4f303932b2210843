// Encoding and decoding speed by kind of text. scripts/bench_tokenizer.py compares with tiktoken.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "tokenizer/detokenizer.h"
#include "tokenizer/split.h"
#include "tokenizer/tokenizer.h"

namespace briar {
namespace {

constexpr size_t kTextBytes = 1000000;

size_t below(std::mt19937& random, size_t n) {
  return std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

// Words of the vocabulary, low ids more often than high ones: every piece is a token.
std::string words() {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  std::mt19937 random(1);
  std::string text;
  while (text.size() < kTextBytes) {
    const double rank = std::exp(std::uniform_real_distribution<>(5.6, 12.2)(random));
    const std::string_view token = *tokenizer->token_bytes(static_cast<int32_t>(rank));
    if (token.size() > 1 && token[0] == ' ' && token[1] >= 'a' && token[1] <= 'z') text += token;
  }
  return text;
}

// Made-up words, each a merge of its own.
std::string unknown_words() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < kTextBytes) {
    for (size_t size = 3 + below(random, 10); size > 0; --size) {
      text += static_cast<char>('a' + below(random, 26));
    }
    text += ' ';
  }
  return text;
}

// Runs of Han characters as between two punctuation marks.
std::string han() {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < kTextBytes) {
    for (size_t size = 2 + below(random, 14); size > 0; --size) {
      const size_t c = 0x4E00 + below(random, 2000);
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    }
    text += "，";
  }
  return text;
}

std::string one_letter() { return std::string(kTextBytes, 'a'); }

void encode(benchmark::State& state, std::string (*make_text)()) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const std::string text = make_text();
  std::vector<int32_t> ids;
  for (auto _ : state) {
    ids.clear();
    tokenizer->encode(text, ids);
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK_CAPTURE(encode, words, words)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, unknown_words, unknown_words)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, han, han)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, one_letter, one_letter)->Unit(benchmark::kMillisecond);

void split(benchmark::State& state, std::string (*make_text)()) {
  const std::string text = make_text();
  const char* const end = text.data() + text.size();
  for (auto _ : state) {
    for (const char* p = text.data(); p < end;) benchmark::DoNotOptimize(p = piece_end(p, end));
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK_CAPTURE(split, words, words)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(split, han, han)->Unit(benchmark::kMillisecond);

void stream(benchmark::State& state, std::string (*make_text)()) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const std::vector<int32_t> ids = tokenizer->encode(make_text());
  for (auto _ : state) {
    Utf8Stream stream;
    for (const int32_t id : ids) benchmark::DoNotOptimize(stream.push(*tokenizer->token_bytes(id)));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * ids.size()));
}
BENCHMARK_CAPTURE(stream, words, words)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stream, han, han)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace briar

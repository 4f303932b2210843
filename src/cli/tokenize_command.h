// `briar tokenize`: text to ids and back, line by line, and the encoder's speed.
#pragma once

#include <string>

namespace briar {

// Exactly one of `jsonl` and `bench_file` is set; "-" is standard input. `out` empty: standard
// output.
struct TokenizeOptions {
  std::string tokenizer = {};   // a model folder or GGUF file; empty: the bundled o200k_harmony
  std::string jsonl = {};       // lines of {"text"} to encode or {"ids"} to decode
  std::string bench_file = {};  // a text to encode on one thread
  std::string out = {};
  bool specials = false;  // spellings of special tokens in the text become their ids
};

// Returns the exit code: 0; 1 and a line on standard error for bad input; 2 for wrong usage.
int run_tokenize(const TokenizeOptions& options);

}  // namespace briar

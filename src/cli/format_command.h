// `briar format`: what a chat format makes of conversations, token ids and tools, line by line.
#pragma once

#include <string>

namespace briar {

struct FormatOptions {
  enum class Mode { kRender, kParse, kSchema };
  Mode mode = Mode::kRender;
  std::string format = "harmony";
  std::string tokenizer = {};   // a model folder or GGUF file; empty: the bundled o200k_harmony
  bool strict_library = false;  // exactly what the format's reference library does
  std::string in = {};          // JSON lines; "-" or empty: standard input
  std::string out = {};         // "-" or empty: standard output
};

// Returns the exit code: 0; 1 and a line on standard error for bad input. What a line's
// conversation or tool gets wrong is not bad input: the line's record holds the error.
int run_format(const FormatOptions& options);

}  // namespace briar

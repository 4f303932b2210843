// What a fuzz target asserts: a failure ends the process with a message, which libFuzzer keeps the
// input of.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace briar {

inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// Every error of a reader names the file and is one line.
inline void require_error_line(std::string_view message) {
  require(message.starts_with("f: "), message);
  require(message.find('\n') == message.npos, "an error is one line");
}

}  // namespace briar

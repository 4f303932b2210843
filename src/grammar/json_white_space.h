// Bounds the white space between the tokens of a JSON text. Its grammar has no bound, and models
// that lost their way fill the rest of their budget with it.
#pragma once

#include <cstdint>
#include <string_view>

namespace briar {

// Follows a JSON text byte by byte; a value, so that earlier ones can be kept.
class JsonWhiteSpace {
 public:
  // Enough for an indentation of 4 at 16 levels.
  static constexpr int kMaxRun = 64;

  void push(std::string_view bytes) {
    for (const char c : bytes) push(c);
  }
  // No token of white space alone should follow.
  bool is_exhausted() const { return run_ >= kMaxRun; }

 private:
  void push(char c) {
    if (is_in_string_) {
      is_in_string_ = is_escaped_ || c != '"';
      is_escaped_ = !is_escaped_ && c == '\\';
      return;
    }
    is_in_string_ = c == '"';
    const bool is_space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    run_ = is_space ? run_ + 1 : 0;
  }

  int32_t run_ = 0;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace briar

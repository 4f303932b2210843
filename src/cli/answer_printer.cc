#include "cli/answer_printer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace briar {

AnswerPrinter::AnswerPrinter() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void AnswerPrinter::print(const Delta& delta) {
  if (delta.kind == Delta::Kind::kReasoning) {
    if (is_terminal_ && !is_in_reasoning_) fmt::print("\x1b[2m");
    is_in_reasoning_ = true;
  } else {
    close_reasoning();
  }
  if (!delta.tool_name.empty()) fmt::print("\n[call {}] ", delta.tool_name);
  fmt::print("{}", delta.text);
  std::fflush(stdout);
}

void AnswerPrinter::finish() {
  close_reasoning();
  fmt::print("\n");
  std::fflush(stdout);
}

void AnswerPrinter::close_reasoning() {
  if (!is_in_reasoning_) return;
  is_in_reasoning_ = false;
  fmt::print("{}\n\n", is_terminal_ ? "\x1b[0m" : "");
}

}  // namespace briar

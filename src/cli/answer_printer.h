// An answer on standard output as it comes: reasoning (dimmed on a terminal), calls, text.
#pragma once

#include "formats/format.h"

namespace briar {

class AnswerPrinter {
 public:
  AnswerPrinter();

  void print(const Delta& delta);
  // Ends the answer with a line break. The next delta begins another one.
  void finish();

 private:
  void close_reasoning();

  const bool is_terminal_;
  bool is_in_reasoning_ = false;
};

}  // namespace briar

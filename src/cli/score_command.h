// `briar score`: log-probabilities of prompts and their greedy continuations, by token id.
#pragma once

#include <string>

#include "cli/model_flags.h"

namespace briar {

struct ScoreOptions {
  ModelFlags model;
  std::string in, out;      // "-" = standard input or output
  std::string batch = "1";  // sequences together: a number, or "all"
  int64_t generate = 0;     // for lines that do not say
};

// Returns the exit code; throws UserError.
int run_score(const ScoreOptions& options);

}  // namespace briar

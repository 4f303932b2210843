// `briar generate`: one prompt, one answer.
#pragma once

#include <string>
#include <vector>

#include "cli/model_flags.h"

namespace briar {

struct GenerateOptions {
  GenerateOptions() { model.engine.max_seqs = 1; }

  ModelFlags model;
  SamplingFlags sampling;
  // Exactly one of the three.
  std::string prompt;
  std::string prompt_file;
  std::string token_ids_file;  // a JSON list of ids
  std::string system;          // instructions for the model; chat prompts only
  std::string reasoning_effort;
  std::string format;  // empty: the model's own
  bool raw = false;    // the prompt is the text itself, not a user message
  int64_t max_tokens = 256;
  std::vector<std::string> stop;
  int32_t num_top_logprobs = -1;
  bool ignore_eos = false;
  bool json = false;
};

// Returns the exit code; throws UserError.
int run_generate(const GenerateOptions& options);

}  // namespace briar

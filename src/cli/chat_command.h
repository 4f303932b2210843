// `briar chat`: a conversation in the terminal.
#pragma once

#include <string>

#include "cli/model_flags.h"

namespace briar {

struct ChatOptions {
  ChatOptions() { model.engine.max_seqs = 1; }

  ModelFlags model;
  SamplingFlags sampling;
  std::string format;  // empty: the model's own
  std::string system;  // instructions for the model
  std::string reasoning_effort;
  int64_t max_tokens = 1024;  // of one answer
  bool echo = false;          // questions appear in the output too, for transcripts of scripts
};

// Reads questions from standard input until it ends. Returns the exit code; throws UserError.
int run_chat(const ChatOptions& options);

}  // namespace briar

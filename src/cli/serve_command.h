// `briar serve`: OpenAI's API over HTTP, from a model or from a script.
#pragma once

#include <string>
#include <vector>

#include "cli/model_flags.h"
#include "server/http/http_options.h"

namespace briar {

struct ServeOptions {
  ServeOptions() { model.engine.max_waiting = 1024; }

  ModelFlags model;
  // Empty, "scripted:FILE" (engine/scripted_engine.h), "scripted:loop" (a line of our own, 100
  // tokens a second) or "scripted:loop:FILE" (the file's first line).
  std::string engine;
  HttpOptions http;
  std::vector<std::string> api_keys;  // and those of the file and of BRIAR_API_KEY
  std::string api_key_file;
  std::vector<std::string> model_names;
  double request_timeout_s = 0;
  double grace_s = 30;
  bool always_constrains = false;
};

// Returns the exit code once a signal has ended the server; throws UserError.
int run_serve(const ServeOptions& options);

}  // namespace briar

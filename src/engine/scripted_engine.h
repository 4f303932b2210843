// An engine that says what a script says: any token sequence goes through the real server, and the
// server can be measured without a model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "briar/engine.h"

namespace briar {

// What one request gets, whatever it asks.
struct ScriptLine {
  std::vector<int32_t> tokens = {};
  // Empty, or one list for each token: its log-probability under its own id, and alternatives, best
  // first.
  std::vector<std::vector<TokenLogprobs>> logprobs = {};
  int64_t delay_us = 0;  // before each token
};

struct Script {
  std::vector<ScriptLine> lines = {};
  // The one line is every request's and starts anew at its end; else the n-th request gets the n-th
  // line, and later ones an error (503).
  bool is_loop = false;
  ModelDescription model = {};
};

// Reads JSON lines {tokens: [ids], logprobs?, delay_us?}. `logprobs` has an element for each token:
// a number, or a list of [id, logprob] pairs; null stands for minus infinity. Throws UserError.
std::vector<ScriptLine> read_script(const std::string& path);

// A request ends with kStop after one of its stop ids or when stops_after says so, with kLength
// after max_tokens or at its line's end. Its sampling parameters, constraint and priority do not
// matter; prompt log-probabilities, hidden states and KV handles are refused (400). Callbacks run
// on one thread, requests take turns.
std::unique_ptr<Engine> make_scripted_engine(Script script);

}  // namespace briar

// Where everything meets: an engine, a tokenizer and a chat format behind the OpenAI API, health,
// metrics and the web page over HTTP, until a signal ends it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "briar/engine.h"
#include "formats/format.h"
#include "server/api/api_context.h"
#include "server/http/http_options.h"
#include "tokenizer/tokenizer.h"

namespace briar {

struct ServerOptions {
  HttpOptions http = {};  // on_answered is the server's own
  std::vector<std::string> model_names = {};
  SamplingDefaults defaults = {};
  double default_timeout_s = 0;  // of requests that set none; 0 = no deadline
  bool always_constrains = false;  // every chat keeps to its format's grammar
  ApiLimits limits = {};
  double grace_seconds = 30;  // after SIGTERM, for the answers under way
  std::string version = {};
  // Called with the address once requests are answered.
  std::function<void(const std::string& address)> on_ready = {};
};

// Serves until SIGTERM or SIGINT; docs/server.md says how it ends then. Throws UserError if it
// cannot listen, and the engine's CheckError if that fails while serving. A second signal ends the
// process at once, with exit code 0.
void run_server(ServerOptions options, Engine& engine, std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const Format> format);

}  // namespace briar

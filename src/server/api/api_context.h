// What all endpoints of the API work with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "briar/engine.h"
#include "formats/format.h"
#include "grammar/grammar.h"
#include "server/api/limits.h"
#include "server/api/observer.h"
#include "server/api/parse.h"
#include "server/api/response_store.h"
#include "server/api/worker.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// What a request that says nothing gets: the model's generation_config.json.
struct SamplingDefaults {
  double temperature = 1;
  double top_p = 1;
  double min_p = 0;
  int64_t top_k = 0;
  std::vector<int32_t> stop_token_ids;  // the model's list of end tokens
};

struct ApiConfig {
  Engine* engine = nullptr;  // outlives the API
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Format> format;
  std::vector<std::string> model_names;  // at least one; the first is what answers call it
  SamplingDefaults defaults;
  double default_timeout_s = 0;  // of requests that set none; 0 = no deadline
  // Makes answers fit a schema and calls fit their tools; null: such requests are refused.
  std::shared_ptr<GrammarCompiler> grammars;
  // Binds every chat to its format's grammar, not only those that ask for a shape or for calls.
  bool always_constrains = false;
  ApiLimits limits;
  ApiObserver* observer = nullptr;  // outlives the API; may be null
};

// What the handlers of one API share.
class ResponseRun;
struct ApiState {
  ApiConfig config;
  ParseContext parse;
  int64_t start_seconds = 0;  // since 1970: when the models were "created"
  std::unique_ptr<ResponseStore> store;
  std::mutex background_mutex;
  std::map<std::string, std::weak_ptr<ResponseRun>, std::less<>> background;  // in progress, by id
  std::shared_ptr<Worker> compile_worker = std::make_shared<Worker>();
  std::shared_ptr<Worker> worker =
      std::make_shared<Worker>();  // the strand of background responses
};

}  // namespace briar

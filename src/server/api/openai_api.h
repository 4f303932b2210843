// OpenAI's HTTP API over an engine and a chat format: what the server's routes do.
//
//   OpenAiApi api({.engine = engine.get(), .tokenizer = t, .format = f, .model_names = {"tiny"}});
//   for (HttpRoute& route : api.routes()) server.add(std::move(route));
//
// docs/openai_api.md lists endpoints, parameters and limits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/api/api_context.h"
#include "server/http/http.h"

namespace briar {

struct ApiState;

// Handlers share the API's state: routes stay good after the object is gone. The engine must live
// until every reply has been answered.
class OpenAiApi {
 public:
  explicit OpenAiApi(ApiConfig config);
  std::vector<HttpRoute> routes() const;

  // Responses that are made with nobody waiting for them, and their end: each is stored as
  // cancelled soon after.
  int64_t num_background() const;
  void end_background();

 private:
  std::shared_ptr<ApiState> state_;
};

}  // namespace briar

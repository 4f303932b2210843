#include "server/api/openai_api.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "server/api/response_run.h"
#include "server/api/services.h"

namespace briar {
namespace {

// Whatever happens in a handler, its client gets an answer and the process lives on.
HttpHandler guarded(std::shared_ptr<ApiState> api, ApiHandler handler) {
  return [api = std::move(api), handler](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    try {
      handler(api, std::move(request), reply);
    } catch (const std::exception& e) {
      log_error("a request failed: {}", e.what());
      send_error(*reply, Error{.message = "internal error", .param = {}, .http_status = 500});
    }
  };
}

}  // namespace

OpenAiApi::OpenAiApi(ApiConfig config) : state_(std::make_shared<ApiState>()) {
  CHECK(config.engine != nullptr && config.tokenizer && config.format,
        "the API needs an engine, a tokenizer and a format");
  CHECK(!config.model_names.empty(), "the API needs a name for its model");
  state_->parse.limits = config.limits;
  state_->parse.num_token_ids =
      std::min<int64_t>(config.tokenizer->vocab_size(), config.engine->model().vocab_size);
  state_->store = std::make_unique<ResponseStore>(config.limits);
  state_->start_seconds = unix_seconds();
  state_->config = std::move(config);
}

std::vector<HttpRoute> OpenAiApi::routes() const {
  const auto route = [&](const char* method, const char* path, ApiHandler handler) {
    return HttpRoute{.method = method, .path = path, .handler = guarded(state_, handler)};
  };
  return {route("POST", "/v1/chat/completions", serve_chat),
          route("POST", "/v1/chat/completions/render", serve_chat_render),
          route("POST", "/v1/completions", serve_completion),
          route("POST", "/v1/responses", serve_responses),
          route("GET", "/v1/responses/*", serve_stored_response),
          route("DELETE", "/v1/responses/*", serve_response_deletion),
          route("POST", "/v1/responses/*", serve_response_action),
          route("GET", "/v1/models", serve_models),
          route("GET", "/v1/models/*", serve_model),
          route("POST", "/tokenize", serve_tokenize),
          route("POST", "/detokenize", serve_detokenize)};
}

int64_t OpenAiApi::num_background() const {
  std::lock_guard lock(state_->background_mutex);
  return std::ssize(state_->background);
}

void OpenAiApi::end_background() {
  state_->worker->post([state = state_] {
    std::vector<std::shared_ptr<ResponseRun>> runs;
    {
      std::lock_guard lock(state->background_mutex);
      for (const auto& [id, weak] : state->background) {
        if (auto run = weak.lock()) runs.push_back(std::move(run));
      }
    }
    for (const auto& run : runs) run->cancel();
  });
}

}  // namespace briar

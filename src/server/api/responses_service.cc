// /v1/responses: create, get, delete, cancel.
#include <fmt/core.h>

#include <utility>

#include "formats/json_text.h"
#include "server/api/constraints.h"
#include "server/api/plan_choices.h"
#include "server/api/response_run.h"
#include "server/api/responses.h"
#include "server/api/services.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

constexpr std::string_view kPrefix = "/v1/responses/";

Error not_found(std::string_view id) {
  Error error =
      make_error("the response '{}' is not stored here (any more)", lossy_utf8(id.substr(0, 128)));
  error.http_status = 404;
  error.code = "response_not_found";
  return error;
}

// Leaves out the oldest turns until the rest fits: what "truncation": "auto" asks for.
Result<std::vector<int32_t>> render_fitting(const ApiConfig& config, ResponsesRequest& request) {
  std::vector<Message>& messages = request.chat.prompt.messages;
  while (true) {
    auto prompt = config.format->render_prompt(request.chat.prompt);
    if (!prompt) return prompt;
    const auto fits =
        fit_prompt(request.chat.params, config.engine->model().max_model_len, *prompt);
    if (fits) return prompt;
    size_t next_turn = 1;
    while (next_turn < messages.size() && messages[next_turn].role != Role::kUser) ++next_turn;
    if (!request.truncates || next_turn >= messages.size()) {
      Error error = fits.error();
      error.param = "input";
      return error;
    }
    messages.erase(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(next_turn));
  }
}

// A checked request and its prompt's ids.
struct Prepared {
  Parsed<ResponsesRequest> parsed;
  std::vector<int32_t> prompt;
};

Result<Prepared> prepare(const std::shared_ptr<ApiState>& api, std::string_view body) {
  auto parsed = parse_responses_request(
      body, api->parse, [&](std::string_view id) { return api->store->conversation(id); });
  if (!parsed) return parsed.error();
  if (auto known = check_model(api->config, parsed->request.chat.model); !known) {
    return known.error();
  }
  auto prompt = render_fitting(api->config, parsed->request);
  if (!prompt) return prompt.error();
  return Prepared{std::move(*parsed), std::move(*prompt)};
}

ChoicePlan plan_response(const ApiConfig& config, const ChatRequest& chat,
                         std::vector<int32_t> prompt, Constraints constraints) {
  std::vector<ChoicePlan> plans;
  plan_choices(config, chat.params, seed_of(chat.params),
               {.prompt = std::move(prompt),
                .make_parser = chat_parser_maker(config, chat.prompt),
                .constraints = std::move(constraints),
                .own_stop_ids = chat_stop_ids(config)},
               plans);
  return std::move(plans.front());
}

std::shared_ptr<ResponseRun> find_background(ApiState& api, const std::string& id) {
  std::lock_guard lock(api.background_mutex);
  const auto found = api.background.find(id);
  return found == api.background.end() ? nullptr : found->second.lock();
}

// The run belongs to the engine until it ends; a place in the table lets others cancel it.
void start_in_background(const std::shared_ptr<ApiState>& api, ResponseRun::Setup setup,
                         ChoicePlan plan) {
  const std::shared_ptr<HttpReply> reply = std::exchange(setup.reply, nullptr);
  const std::string id = setup.head.id;
  const HttpHeaders headers = setup.headers;
  auto run = std::make_shared<ResponseRun>(std::move(setup));
  {
    std::lock_guard lock(api->background_mutex);
    if (static_cast<int64_t>(api->background.size()) >=
        api->config.limits.max_background_responses) {
      return send_error(*reply, Error{.message = "too many background responses are in progress",
                                      .param = {},
                                      .http_status = 429});
    }
    api->background[id] = run;
  }
  api->worker->post([api, run, reply, id, headers, plan = std::move(plan)]() mutable {
    const Status status = run->start(std::move(plan));
    if (!status) {
      std::lock_guard lock(api->background_mutex);
      api->background.erase(id);
    }
    reply->post([reply, status, json = run->json(), headers] {
      status ? send_json(*reply, json, headers) : send_error(*reply, status.error());
    });
  });
}

}  // namespace

void serve_responses(const std::shared_ptr<ApiState>& api, HttpRequest request,
                     std::shared_ptr<HttpReply> reply) {
  auto prepared = prepare(api, request.body);
  if (!prepared) return send_error(*reply, prepared.error());
  const ChatRequest chat = prepared->parsed.request.chat;
  ResponseRun::Setup setup{.api = api,
                           .reply = reply,
                           .head = {.id = answer_id("resp_", chat.params, request),
                                    .model = api->config.model_names.front(),
                                    .created = unix_seconds()},
                           .headers = ignored_headers(prepared->parsed.ignored),
                           .request = std::move(prepared->parsed.request)};
  make_constraints(
      api, chat, 1, reply,
      [api, chat, setup, prompt = std::move(prepared->prompt)](Result<Constraints> made) {
        if (!made) return send_error(*setup.reply, made.error());
        ChoicePlan plan = plan_response(api->config, chat, prompt, std::move(*made));
        if (setup.request.is_background) {
          return start_in_background(api, setup, std::move(plan));
        }
        // A refusal has been answered.
        (void)std::make_shared<ResponseRun>(setup)->start(std::move(plan));
      });
}

void serve_stored_response(const std::shared_ptr<ApiState>& api, HttpRequest request,
                           std::shared_ptr<HttpReply> reply) {
  const std::string_view id = std::string_view(request.path).substr(kPrefix.size());
  auto json = api->store->json(id);
  if (!json) return send_error(*reply, not_found(id));
  send_json(*reply, std::move(*json));
}

void serve_response_deletion(const std::shared_ptr<ApiState>& api, HttpRequest request,
                             std::shared_ptr<HttpReply> reply) {
  const std::string id = request.path.substr(kPrefix.size());
  if (!api->store->erase(id)) return send_error(*reply, not_found(id));
  // What is still being made for it ends; nothing is left to be stored.
  api->worker->post([api, id] {
    if (auto run = find_background(*api, id)) run->cancel();
  });
  send_json(*reply,
            fmt::format(R"({{"id":{},"object":"response","deleted":true}})", json_quote(id)));
}

void serve_response_action(const std::shared_ptr<ApiState>& api, HttpRequest request,
                           std::shared_ptr<HttpReply> reply) {
  constexpr std::string_view kCancel = "/cancel";
  std::string id = request.path.substr(kPrefix.size());
  if (!id.ends_with(kCancel)) return send_error(*reply, not_found(id));
  id.resize(id.size() - kCancel.size());
  if (!api->store->json(id)) return send_error(*reply, not_found(id));
  api->worker->post([api, id, reply] {
    const auto run = find_background(*api, id);
    if (run) run->cancel();
    auto json = api->store->json(id);
    reply->post([reply, id, json = std::move(json)] {
      json ? send_json(*reply, *json) : send_error(*reply, not_found(id));
    });
  });
}

}  // namespace briar

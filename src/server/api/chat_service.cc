// /v1/chat/completions and its render route.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "formats/json_text.h"
#include "server/api/chat_reply.h"
#include "server/api/constraints.h"
#include "server/api/plan_choices.h"
#include "server/api/services.h"

namespace briar {
namespace {

// A checked request and its prompt's ids, or the error.
struct Rendered {
  Parsed<ChatRequest> parsed;
  std::vector<int32_t> prompt;
};

Result<Rendered> render_chat(const ApiState& api, std::string_view body) {
  auto parsed = parse_chat_request(body, api.parse);
  if (!parsed) return parsed.error();
  if (auto known = check_model(api.config, parsed->request.model); !known) return known.error();
  auto prompt = api.config.format->render_prompt(parsed->request.prompt);
  if (!prompt) return prompt.error();
  const GenerationParams& params = parsed->request.params;
  auto fits = fit_prompt(params, api.config.engine->model().max_model_len, *prompt);
  if (!fits) {
    Error error = fits.error();
    error.param = "messages";
    return error;
  }
  return Rendered{std::move(*parsed), std::move(*prompt)};
}

}  // namespace

ParserMaker chat_parser_maker(const ApiConfig& config, const PromptRequest& prompt) {
  ParserOptions options;
  options.is_in_answer = prompt.continues_last;
  for (const ToolDefinition& tool : prompt.tools) options.tool_names.push_back(tool.name);
  return [format = config.format, options] { return format->make_parser(options); };
}

std::vector<int32_t> chat_stop_ids(const ApiConfig& config) {
  std::vector<int32_t> ids = config.format->stop_ids();
  for (const int32_t id : config.defaults.stop_token_ids) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

std::string answer_id(std::string_view prefix, const GenerationParams& params,
                      const HttpRequest& request) {
  return std::string(prefix) + params.request_id.value_or(request.request_id);
}

namespace {

void start_chat(const std::shared_ptr<ApiState>& api, Rendered rendered, Constraints constraints,
                std::string id, std::shared_ptr<HttpReply> reply) {
  const ApiConfig& config = api->config;
  const ChatRequest& chat = rendered.parsed.request;
  ChatReply::Options options{.includes_reasoning = chat.includes_reasoning, .prompt = {}};
  if (chat.params.returns_token_ids) options.prompt = rendered.prompt;
  std::vector<ChoicePlan> plans;
  plan_choices(config, chat.params, seed_of(chat.params),
               {.prompt = std::move(rendered.prompt),
                .num_choices = chat.params.n,
                .make_parser = chat_parser_maker(config, chat.prompt),
                .constraints = std::move(constraints),
                .own_stop_ids = chat_stop_ids(config)},
               plans);
  AnswerReply::Setup setup{
      .api = api,
      .reply = std::move(reply),
      .head = {.id = std::move(id), .model = config.model_names.front(), .created = unix_seconds()},
      .headers = ignored_headers(rendered.parsed.ignored),
      .params = chat.params,
      .choices_per_prompt = static_cast<size_t>(chat.params.n),
      .own_stop_ids = chat_stop_ids(config)};
  std::make_shared<ChatReply>(std::move(setup), std::move(options))->start(std::move(plans));
}

}  // namespace

void serve_chat(const std::shared_ptr<ApiState>& api, HttpRequest request,
                std::shared_ptr<HttpReply> reply) {
  auto rendered = render_chat(*api, request.body);
  if (!rendered) return send_error(*reply, rendered.error());
  const ChatRequest chat = rendered->parsed.request;
  const std::string id = answer_id("chatcmpl-", chat.params, request);
  make_constraints(api, chat, chat.params.n, reply,
                   [api, id, reply, rendered = std::move(*rendered)](Result<Constraints> made) {
                     if (!made) return send_error(*reply, made.error());
                     start_chat(api, rendered, std::move(*made), id, reply);
                   });
}

void serve_chat_render(const std::shared_ptr<ApiState>& api, HttpRequest request,
                       std::shared_ptr<HttpReply> reply) {
  const auto rendered = render_chat(*api, request.body);
  if (!rendered) return send_error(*reply, rendered.error());
  send_json(
      *reply,
      fmt::format(R"({{"object":"chat.prompt","model":{},"prompt":{},"token_ids":{},"count":{}}})",
                  json_quote(api->config.model_names.front()),
                  json_quote(api->config.format->text_of(rendered->prompt)),
                  ids_json(rendered->prompt), rendered->prompt.size()),
      ignored_headers(rendered->parsed.ignored));
}

}  // namespace briar

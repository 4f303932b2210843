// /v1/models, /tokenize and /detokenize.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "formats/json_text.h"
#include "server/api/fields.h"
#include "server/api/parse.h"
#include "server/api/services.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

std::string model_json(const ApiState& api, std::string_view name) {
  return fmt::format(
      R"({{"id":{},"object":"model","created":{},"owned_by":"briar","root":{},"parent":null,)"
      R"("max_model_len":{}}})",
      json_quote(name), api.start_seconds, json_quote(api.config.model_names.front()),
      api.config.engine->model().max_model_len);
}

struct TokenizeRequest {
  std::string text;
  bool returns_pieces = false;
};

// vLLM's "prompt" or llama.cpp's "content".
Result<TokenizeRequest> parse_tokenize(std::string_view body, const ParseContext& context) {
  auto json = parse_body(body, context.limits.json_depth);
  if (!json) return json.error();
  ReadLog log;
  Fields fields(json->get_object(), "", log);
  auto text = fields.text("prompt");
  if (!text) text = fields.text("content");
  if (!text) fields.fail("prompt", "'prompt' is missing");
  TokenizeRequest out{.text = text.value_or(""),
                      .returns_pieces = fields.boolean("return_token_strs").value_or(false)};
  if (log.error) return *log.error;
  return out;
}

// The body of a chat is tokenised as its prompt.
bool has_messages(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body, context.limits.json_depth);
  return json && json->get_object().contains("messages");
}

std::string pieces_json(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) {
    if (!out.empty()) out += ',';
    out += json_quote(lossy_utf8(tokenizer.token_bytes(id).value_or("")));
  }
  return out;
}

}  // namespace

void serve_models(const std::shared_ptr<ApiState>& api, HttpRequest,
                  std::shared_ptr<HttpReply> reply) {
  std::string list;
  for (const std::string& name : api->config.model_names) {
    if (!list.empty()) list += ',';
    list += model_json(*api, name);
  }
  send_json(*reply, R"({"object":"list","data":[)" + list + "]}");
}

void serve_model(const std::shared_ptr<ApiState>& api, HttpRequest request,
                 std::shared_ptr<HttpReply> reply) {
  const std::string_view name = std::string_view(request.path).substr(sizeof("/v1/models/") - 1);
  if (auto known = check_model(api->config, name); !known) return send_error(*reply, known.error());
  send_json(*reply, model_json(*api, name.empty() ? api->config.model_names.front() : name));
}

void serve_tokenize(const std::shared_ptr<ApiState>& api, HttpRequest request,
                    std::shared_ptr<HttpReply> reply) {
  const Tokenizer& tokenizer = *api->config.tokenizer;
  std::vector<int32_t> ids;
  bool returns_pieces = false;
  if (has_messages(request.body, api->parse)) {
    const auto chat = parse_chat_request(request.body, api->parse);
    if (!chat) return send_error(*reply, chat.error());
    auto prompt = api->config.format->render_prompt(chat->request.prompt);
    if (!prompt) return send_error(*reply, prompt.error());
    ids = std::move(*prompt);
  } else {
    const auto parsed = parse_tokenize(request.body, api->parse);
    if (!parsed) return send_error(*reply, parsed.error());
    returns_pieces = parsed->returns_pieces;
    ids = tokenizer.encode(parsed->text);
  }
  send_json(*reply,
            fmt::format(R"({{"count":{},"max_model_len":{},"tokens":{},"token_strs":{}}})",
                        ids.size(), api->config.engine->model().max_model_len, ids_json(ids),
                        returns_pieces ? "[" + pieces_json(tokenizer, ids) + "]" : "null"));
}

void serve_detokenize(const std::shared_ptr<ApiState>& api, HttpRequest request,
                      std::shared_ptr<HttpReply> reply) {
  auto json = parse_body(request.body, api->parse.limits.json_depth);
  if (!json) return send_error(*reply, json.error());
  ReadLog log;
  Fields fields(json->get_object(), "", log);
  const auto ids = fields.ids("tokens", size_t{1} << 22, api->parse.num_token_ids);
  if (!ids) fields.fail("tokens", "'tokens' is missing");
  if (log.error) return send_error(*reply, *log.error);
  send_json(*reply, fmt::format(R"({{"prompt":{0},"content":{0}}})",
                                json_quote(api->config.tokenizer->decode(*ids))));
}

}  // namespace briar

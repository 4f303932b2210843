// The handlers behind the routes. Each answers or keeps the reply until it has.
#pragma once

#include <memory>
#include <vector>

#include "server/api/answer_reply.h"
#include "server/api/api_context.h"
#include "server/api/plan_choices.h"
#include "server/http/http.h"

namespace briar {

using ApiHandler = void (*)(const std::shared_ptr<ApiState>&, HttpRequest,
                            std::shared_ptr<HttpReply>);

void serve_chat(const std::shared_ptr<ApiState>& api, HttpRequest request,
                std::shared_ptr<HttpReply> reply);
void serve_chat_render(const std::shared_ptr<ApiState>& api, HttpRequest request,
                       std::shared_ptr<HttpReply> reply);
void serve_completion(const std::shared_ptr<ApiState>& api, HttpRequest request,
                      std::shared_ptr<HttpReply> reply);
void serve_models(const std::shared_ptr<ApiState>& api, HttpRequest request,
                  std::shared_ptr<HttpReply> reply);
void serve_model(const std::shared_ptr<ApiState>& api, HttpRequest request,
                 std::shared_ptr<HttpReply> reply);
void serve_tokenize(const std::shared_ptr<ApiState>& api, HttpRequest request,
                    std::shared_ptr<HttpReply> reply);
void serve_detokenize(const std::shared_ptr<ApiState>& api, HttpRequest request,
                      std::shared_ptr<HttpReply> reply);

void serve_responses(const std::shared_ptr<ApiState>& api, HttpRequest request,
                     std::shared_ptr<HttpReply> reply);
void serve_stored_response(const std::shared_ptr<ApiState>& api, HttpRequest request,
                           std::shared_ptr<HttpReply> reply);
void serve_response_deletion(const std::shared_ptr<ApiState>& api, HttpRequest request,
                             std::shared_ptr<HttpReply> reply);
void serve_response_action(const std::shared_ptr<ApiState>& api, HttpRequest request,
                           std::shared_ptr<HttpReply> reply);

// Reads what a model answers to this prompt.
ParserMaker chat_parser_maker(const ApiConfig& config, const PromptRequest& prompt);
// The stop ids of chat answers: the format's and the model's own list.
std::vector<int32_t> chat_stop_ids(const ApiConfig& config);
std::string answer_id(std::string_view prefix, const GenerationParams& params,
                      const HttpRequest& request);

}  // namespace briar

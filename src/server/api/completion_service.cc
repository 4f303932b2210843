// /v1/completions.
#include <fmt/core.h>

#include <utility>

#include "server/api/completion_reply.h"
#include "server/api/plan_choices.h"
#include "server/api/services.h"

namespace briar {
namespace {

// Raw prompts may spell special tokens, for whoever renders a chat by hand.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, PromptInput input) {
  if (auto* ids = std::get_if<std::vector<int32_t>>(&input)) return std::move(*ids);
  return tokenizer.encode_with_specials(std::get<std::string>(input));
}

Result<std::vector<std::vector<int32_t>>> encode_prompts(const ApiConfig& config,
                                                         CompletionRequest& request) {
  std::vector<std::vector<int32_t>> prompts;
  for (PromptInput& input : request.prompts) {
    prompts.push_back(ids_of(*config.tokenizer, std::move(input)));
    Status fits = Ok{};
    if (prompts.back().empty()) {
      fits = make_error("prompt {} is empty", prompts.size() - 1);
    } else {
      fits = fit_prompt(request.params, config.engine->model().max_model_len, prompts.back());
    }
    if (fits) continue;
    Error error = fits.error();
    error.param = "prompt";
    return error;
  }
  return prompts;
}

}  // namespace

void serve_completion(const std::shared_ptr<ApiState>& api, HttpRequest request,
                      std::shared_ptr<HttpReply> reply) {
  const ApiConfig& config = api->config;
  auto parsed = parse_completion_request(request.body, api->parse);
  if (!parsed) return send_error(*reply, parsed.error());
  CompletionRequest& completion = parsed->request;
  GenerationParams& params = completion.params;
  if (auto known = check_model(config, completion.model); !known) {
    return send_error(*reply, known.error());
  }
  auto prompts = encode_prompts(config, completion);
  if (!prompts) return send_error(*reply, prompts.error());
  CompletionReply::Options options{.prompts = *prompts,
                                   .best_of = completion.best_of,
                                   .echo = completion.echo,
                                   .wants_prompt_logprobs = completion.wants_prompt_logprobs};
  const ParserMaker make_parser = [tokenizer = config.tokenizer,
                                   skips = completion.skips_special_tokens] {
    return std::make_unique<PlainTextParser>(tokenizer, skips);
  };
  // To tell the best of several choices takes their probabilities.
  GenerationParams asked = params;
  if (completion.best_of > params.n && asked.num_top_logprobs < 0) asked.num_top_logprobs = 0;
  const uint64_t seed = seed_of(params);
  std::vector<ChoicePlan> plans;
  for (std::vector<int32_t>& prompt : *prompts) {
    plan_choices(config, asked, seed,
                 {.prompt = std::move(prompt),
                  .num_choices = completion.best_of,
                  .make_parser = make_parser,
                  .own_stop_ids = chat_stop_ids(config)},
                 plans);
  }
  AnswerReply::Setup setup{.api = api,
                           .reply = std::move(reply),
                           .head = {.id = answer_id("cmpl-", params, request),
                                    .model = config.model_names.front(),
                                    .created = unix_seconds()},
                           .headers = ignored_headers(parsed->ignored),
                           .params = params,
                           .choices_per_prompt = static_cast<size_t>(completion.best_of),
                           .own_stop_ids = chat_stop_ids(config)};
  std::make_shared<CompletionReply>(std::move(setup), std::move(options))->start(std::move(plans));
}

}  // namespace briar

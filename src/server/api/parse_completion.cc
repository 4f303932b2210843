// Bodies of /v1/completions.
#include <boost/json.hpp>

#include "server/api/parse_params.h"

namespace briar {
namespace {

namespace bj = boost::json;

// OpenAI's default.
constexpr int64_t kDefaultMaxTokens = 16;

std::optional<PromptInput> read_ids(Fields& body, const bj::array& list, int64_t num_ids) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const bj::value& item : list) {
    bj::error_code code;
    const int64_t id = item.is_number() ? item.to_number<int64_t>(code) : -1;
    if (code || id < 0 || id >= num_ids) {
      body.fail("prompt", "'prompt' holds something that is not a token id from 0 to {}",
                num_ids - 1);
      return std::nullopt;
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return PromptInput(std::move(ids));
}

void read_prompts(Fields& body, const ParseContext& context, CompletionRequest& request) {
  const bj::value* value = body.find("prompt");
  if (value == nullptr) return body.fail("prompt", "'prompt' is missing");
  if (value->is_string()) {
    request.prompts.emplace_back(body.text("prompt").value_or(""));
    return;
  }
  const bj::array* list = body.list("prompt", size_t{1} << 24);
  if (list == nullptr) return;
  if (list->empty()) return body.fail("prompt", "'prompt' is empty");
  if (list->front().is_number()) {
    if (auto ids = read_ids(body, *list, context.num_token_ids)) request.prompts.push_back(*ids);
    return;
  }
  if (list->size() > context.limits.max_prompts) {
    return body.fail("prompt", "'prompt' has {} prompts; at most {} are allowed", list->size(),
                     context.limits.max_prompts);
  }
  for (const bj::value& item : *list) {
    if (item.is_string()) {
      request.prompts.emplace_back(std::string(std::string_view(item.get_string())));
    } else if (item.is_array()) {
      auto ids = read_ids(body, item.get_array(), context.num_token_ids);
      if (!ids) return;
      request.prompts.push_back(std::move(*ids));
    } else {
      return body.fail("prompt", "'prompt' holds {}; expected strings or lists of token ids",
                       json_kind_word(item));
    }
  }
}

void read_counts(Fields& body, const ParseContext& context, CompletionRequest& request) {
  const GenerationParams& params = request.params;
  const auto best_of = body.integer("best_of", 1, context.limits.max_choices);
  request.best_of = static_cast<int>(best_of.value_or(params.n));
  if (request.best_of < params.n) {
    return body.fail("best_of", "'best_of' is {}, less than the {} choices of n", request.best_of,
                     params.n);
  }
  if (params.is_stream && request.best_of > params.n) {
    return body.fail("best_of",
                     "'best_of' above n cannot be streamed: the best is known at the end");
  }
  const auto num_choices = static_cast<int64_t>(request.prompts.size()) * request.best_of;
  if (num_choices > context.limits.max_choices) {
    body.fail("n", "{} prompts of {} choices each; at most {} choices are allowed",
              request.prompts.size(), request.best_of, context.limits.max_choices);
  }
}

void read_logprobs(Fields& body, const ParseContext& context, CompletionRequest& request) {
  if (const auto top = body.integer("logprobs", 0, context.limits.max_top_logprobs)) {
    request.params.num_top_logprobs = static_cast<int32_t>(*top);
  }
  request.echo = body.boolean("echo").value_or(false);
  // The engine knows the log-probabilities of a prompt's own tokens.
  const bool wants = body.integer("prompt_logprobs", 0, 0).has_value();
  if (wants && request.params.is_stream) {
    body.fail("prompt_logprobs", "'prompt_logprobs' cannot be streamed");
  }
  request.wants_prompt_logprobs = wants;
  request.params.wants_prompt_logprobs =
      wants || (request.echo && request.params.num_top_logprobs >= 0);
}

CompletionRequest read_completion(Fields& body, const ParseContext& context) {
  CompletionRequest request;
  request.model = body.text("model", context.limits.max_model_name_bytes).value_or("");
  read_params(body, context, request.params);
  read_prompts(body, context, request);
  read_counts(body, context, request);
  read_logprobs(body, context, request);
  request.params.max_tokens =
      body.integer("max_tokens", 0, int64_t{1} << 40).value_or(kDefaultMaxTokens);
  if (request.params.min_tokens > *request.params.max_tokens) {
    body.fail("min_tokens", "'min_tokens' is {}, more than the {} tokens of max_tokens",
              request.params.min_tokens, *request.params.max_tokens);
  }
  if (const auto suffix = body.text("suffix"); suffix && !suffix->empty()) {
    body.fail("suffix", "'suffix' is not supported: the model does not fill in the middle");
  }
  request.skips_special_tokens = body.boolean("skip_special_tokens").value_or(true);
  std::vector<ResponseFormat> told;  // a raw prompt is told nothing
  AnswerShape shape;
  read_shape(body, context, shape, told);
  if (shape.kind != AnswerShape::Kind::kFree) {
    body.fail("response_format", "a completion cannot be bound to a shape; chats can");
  }
  return request;
}

}  // namespace

Result<Parsed<CompletionRequest>> parse_completion_request(std::string_view text,
                                                           const ParseContext& context) {
  auto json = parse_body(text, context.limits.json_depth);
  if (!json) return json.error();
  ReadLog log;
  Fields body(json->get_object(), "", log);
  Parsed<CompletionRequest> out{.request = read_completion(body, context), .ignored = {}};
  if (log.error) return *log.error;
  body.note_unread();
  out.ignored = std::move(log.ignored);
  return out;
}

}  // namespace briar

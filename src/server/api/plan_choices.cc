#include "server/api/plan_choices.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "server/api/token_rules.h"

namespace briar {
namespace {

SamplingParams sampling_of(const SamplingDefaults& defaults, const GenerationParams& params) {
  SamplingParams sampling;
  sampling.temperature = static_cast<float>(params.temperature.value_or(defaults.temperature));
  sampling.top_k = static_cast<int32_t>(params.top_k.value_or(defaults.top_k));
  sampling.top_p = static_cast<float>(params.top_p.value_or(defaults.top_p));
  if (sampling.top_p <= 0) {  // nothing but the likeliest token
    sampling.top_p = 1;
    sampling.top_k = 1;
  }
  sampling.min_p = static_cast<float>(params.min_p.value_or(defaults.min_p));
  sampling.repetition_penalty = static_cast<float>(params.repetition_penalty);
  sampling.frequency_penalty = static_cast<float>(params.frequency_penalty);
  sampling.presence_penalty = static_cast<float>(params.presence_penalty);
  sampling.logit_bias = params.logit_bias;
  sampling.allowed_token_ids = params.allowed_token_ids;
  sampling.min_tokens = params.min_tokens;
  return sampling;
}

std::optional<std::chrono::steady_clock::time_point> deadline_of(const ApiConfig& config,
                                                                 const GenerationParams& params) {
  const double seconds = params.timeout_s.value_or(config.default_timeout_s);
  if (seconds <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

}  // namespace

uint64_t seed_of(const GenerationParams& params) {
  if (params.seed) return *params.seed;
  thread_local std::mt19937_64 random(uint64_t{std::random_device{}()} << 32 |
                                      std::random_device{}());
  return random();
}

Status fit_prompt(const GenerationParams& params, int64_t max_model_len,
                  std::vector<int32_t>& prompt) {
  if (params.truncate_prompt_tokens) {
    const int64_t answer = params.max_tokens.value_or(1);
    const int64_t room = std::max<int64_t>(max_model_len - answer, 1);
    const int64_t limit =
        *params.truncate_prompt_tokens == -1 ? room : *params.truncate_prompt_tokens;
    const auto size = static_cast<int64_t>(prompt.size());
    if (size > limit) prompt.erase(prompt.begin(), prompt.begin() + (size - limit));
  }
  const auto size = static_cast<int64_t>(prompt.size());
  if (size < max_model_len || (size == max_model_len && params.max_tokens == 0)) return Ok{};
  Error error = make_error("the prompt has {} tokens; prompt and answer together may have {}", size,
                           max_model_len);
  error.code = "context_length_exceeded";
  return error;
}

void plan_choices(const ApiConfig& config, const GenerationParams& params, uint64_t seed,
                  ChoiceSource source, std::vector<ChoicePlan>& out) {
  const int64_t room =
      config.engine->model().max_model_len - static_cast<int64_t>(source.prompt.size());
  Request request;
  request.sampling = sampling_of(config.defaults, params);
  request.sampling.seed = seed;
  request.max_tokens = std::min(params.max_tokens.value_or(room), room);
  request.stop_token_ids = params.stop_token_ids;
  if (!params.ignore_eos) {
    request.stop_token_ids.insert(request.stop_token_ids.end(), source.own_stop_ids.begin(),
                                  source.own_stop_ids.end());
  }
  request.num_top_logprobs = params.num_top_logprobs;
  request.wants_prompt_logprobs = params.wants_prompt_logprobs;
  request.priority = params.priority;
  request.deadline = deadline_of(config, params);
  request.cache_salt = params.cache_salt;
  request.prompt = std::move(source.prompt);
  const AnswerReaderOptions reader{
      .stop = params.stop, .includes_stop = params.includes_stop, .min_tokens = params.min_tokens};
  const BadWords bad_words(*config.tokenizer, params.bad_words);
  for (int i = 0; i < source.num_choices; ++i) {
    const auto idx = static_cast<size_t>(i);
    auto constraint = idx < source.constraints.size() ? source.constraints[idx] : nullptr;
    ChoicePlan plan;
    plan.request = request;
    plan.request.sampling.choice = static_cast<uint32_t>(i);
    plan.request.constraint = bad_words.add_to(std::move(constraint));
    plan.make_reader = [make_parser = source.make_parser, reader] {
      return std::make_unique<AnswerReader>(make_parser(), reader);
    };
    plan.has_stop_strings = !params.stop.empty();
    out.push_back(std::move(plan));
  }
}

}  // namespace briar

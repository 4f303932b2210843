// From a request's parameters and a prompt's ids to what the engine is given.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "server/api/api_context.h"
#include "server/api/generation.h"
#include "server/api/request.h"

namespace briar {

using ParserMaker = std::function<std::unique_ptr<StreamParser>()>;

struct ChoiceSource {
  std::vector<int32_t> prompt;
  int num_choices = 1;
  ParserMaker make_parser;
  std::vector<std::shared_ptr<TokenConstraint>> constraints = {};  // one a choice, or none
  std::vector<int32_t> own_stop_ids = {};  // that end any answer, unless ignore_eos
};

// Cuts the prompt as truncate_prompt_tokens says, and checks that it leaves room for an answer.
Status fit_prompt(const GenerationParams& params, int64_t max_model_len,
                  std::vector<int32_t>& prompt);

// Appends one plan for each choice. `seed` is the request's own or one drawn for it.
void plan_choices(const ApiConfig& config, const GenerationParams& params, uint64_t seed,
                  ChoiceSource source, std::vector<ChoicePlan>& out);

// The request's seed; without one, a new one each time.
uint64_t seed_of(const GenerationParams& params);

}  // namespace briar

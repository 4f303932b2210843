// What clients ask for, as types. Nothing below this border sees JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "briar/engine.h"
#include "formats/format.h"

namespace briar {

// What all endpoints that generate share. Optionals that are not given take the model's defaults.
struct GenerationParams {
  std::optional<double> temperature, top_p, min_p;
  std::optional<int64_t> top_k;  // 0 = off
  double repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::optional<uint64_t> seed;
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> allowed_token_ids;
  std::vector<std::string> bad_words;
  std::vector<std::string> stop;  // strings of the answer's text
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool includes_stop = false;  // the stop string stays in the text
  int64_t min_tokens = 0;
  std::optional<int64_t> max_tokens;
  int n = 1;
  int32_t num_top_logprobs = -1;  // -1 = no log-probabilities; 0 = of the chosen tokens
  bool wants_prompt_logprobs = false;
  int32_t priority = 0;
  std::string cache_salt;
  std::optional<double> timeout_s;
  std::optional<int64_t> truncate_prompt_tokens;  // -1 = as many as fit
  bool returns_token_ids = false;
  bool is_stream = false;
  bool includes_usage = false;          // a last chunk with the usage
  bool includes_running_usage = false;  // the usage so far in every chunk
  std::optional<std::string> request_id;
};

struct ToolSelection {
  enum class Kind { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;  // kNamed
};

// What the answer's text must look like; enforced while sampling.
struct AnswerShape {
  enum class Kind { kFree, kJsonObject, kJsonSchema, kRegex, kEbnf, kStructuralTag, kChoice };
  Kind kind = Kind::kFree;
  std::string text;  // the schema, pattern, grammar or tag; JSON where it is JSON
  std::vector<std::string> choices;
};

struct ChatRequest {
  std::string model;  // empty: the default one
  GenerationParams params;
  PromptRequest prompt;
  ToolSelection tool_choice;
  std::vector<bool> strict_tools;  // of each of prompt.tools: its arguments must fit its schema
  AnswerShape shape;
  bool includes_reasoning = true;
  std::optional<int64_t> thinking_budget;  // most tokens of reasoning
};

using PromptInput = std::variant<std::string, std::vector<int32_t>>;

struct CompletionRequest {
  std::string model;
  GenerationParams params;
  std::vector<PromptInput> prompts;
  bool echo = false;
  bool skips_special_tokens = true;
  int best_of = 1;
  bool wants_prompt_logprobs = false;  // as a field of its own
};

// A request and the fields that were not understood.
template <class T>
struct Parsed {
  T request;
  std::vector<std::string> ignored;
};

}  // namespace briar

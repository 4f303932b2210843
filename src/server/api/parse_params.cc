#include "server/api/parse_params.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <limits>

namespace briar {
namespace {

namespace bj = boost::json;

constexpr int64_t kMaxTokens = int64_t{1} << 40;  // the model's length is the bound that counts

void read_logit_bias(Fields& body, const ParseContext& context, GenerationParams& params) {
  const auto bias = body.object("logit_bias");
  if (!bias) return;
  if (bias->json().size() > context.limits.max_logit_bias) {
    body.fail("logit_bias", "'logit_bias' has {} entries; at most {} are allowed",
              bias->json().size(), context.limits.max_logit_bias);
    return;
  }
  for (const auto& [key, value] : bias->json()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
        id >= context.num_token_ids) {
      body.fail("logit_bias", "a key of 'logit_bias' is not a token id from 0 to {}",
                context.num_token_ids - 1);
      return;
    }
    bj::error_code code;
    const double number = value.is_number() ? value.to_number<double>(code) : 1000;
    if (code || !(number >= -100 && number <= 100)) {
      body.fail("logit_bias",
                "the bias of token {} in 'logit_bias' is not a number from -100 to 100", id);
      return;
    }
    params.logit_bias.push_back(
        {.token_id = static_cast<int32_t>(id), .bias = static_cast<float>(number)});
  }
}

void read_sampling(Fields& body, const ParseContext& context, GenerationParams& params) {
  params.temperature = body.number("temperature", 0, 2);
  params.top_p = body.number("top_p", 0, 1);
  params.min_p = body.number("min_p", 0, 1);
  if (const auto top_k = body.integer("top_k", -1, std::numeric_limits<int32_t>::max())) {
    params.top_k = std::max<int64_t>(*top_k, 0);  // vLLM's -1 is off too
  }
  params.repetition_penalty = body.number("repetition_penalty", 0.01, 10).value_or(1);
  params.frequency_penalty = body.number("frequency_penalty", -2, 2).value_or(0);
  params.presence_penalty = body.number("presence_penalty", -2, 2).value_or(0);
  if (const auto seed = body.integer("seed", std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max())) {
    params.seed = static_cast<uint64_t>(*seed);
  }
  read_logit_bias(body, context, params);
  if (auto ids = body.ids("allowed_token_ids", context.limits.max_allowed_token_ids,
                          context.num_token_ids)) {
    if (ids->empty()) body.fail("allowed_token_ids", "'allowed_token_ids' is empty");
    params.allowed_token_ids = std::move(*ids);
  }
}

void read_words(Fields& body, std::string_view key, size_t max_size, size_t max_bytes,
                std::vector<std::string>& out) {
  auto words = body.texts(key, max_size, max_bytes);
  if (!words) return;
  for (const std::string& word : *words) {
    if (word.empty()) body.fail(key, "'{}' holds an empty string", key);
  }
  out = std::move(*words);
}

void read_stops(Fields& body, const ParseContext& context, GenerationParams& params) {
  const ApiLimits& limits = context.limits;
  read_words(body, "stop", limits.max_stop_strings, limits.max_stop_bytes, params.stop);
  read_words(body, "bad_words", limits.max_bad_words, limits.max_bad_word_bytes, params.bad_words);
  if (auto ids = body.ids("stop_token_ids", limits.max_stop_token_ids, context.num_token_ids)) {
    params.stop_token_ids = std::move(*ids);
  }
  params.ignore_eos = body.boolean("ignore_eos").value_or(false);
  params.includes_stop = body.boolean("include_stop_str_in_output").value_or(false) ||
                         body.boolean("no_stop_trim").value_or(false);
}

void read_stream(Fields& body, GenerationParams& params) {
  params.is_stream = body.boolean("stream").value_or(false);
  auto options = body.object("stream_options");
  if (!options) return;
  if (!params.is_stream) {
    body.fail("stream_options", "'stream_options' is only allowed with stream set to true");
    return;
  }
  params.includes_usage = options->boolean("include_usage").value_or(false);
  params.includes_running_usage = options->boolean("continuous_usage_stats").value_or(false);
  options->skip("include_obfuscation");
  options->note_unread();
}

void read_request_id(Fields& body, GenerationParams& params) {
  params.request_id = body.text("request_id", 128);
  if (!params.request_id) return;
  const bool is_plain = !params.request_id->empty() &&
                        std::all_of(params.request_id->begin(), params.request_id->end(),
                                    [](char c) { return c > 0x20 && c < 0x7f; });
  if (!is_plain) {
    body.fail("request_id", "'request_id' must be 1 to 128 printable ASCII characters");
  }
}

}  // namespace

void read_params(Fields& body, const ParseContext& context, GenerationParams& params) {
  // Values that would be multiplied come first.
  params.n = static_cast<int>(body.integer("n", 1, context.limits.max_choices).value_or(1));
  read_sampling(body, context, params);
  read_stops(body, context, params);
  read_stream(body, params);
  params.min_tokens = body.integer("min_tokens", 0, kMaxTokens).value_or(0);
  params.priority =
      static_cast<int32_t>(body.integer("priority", std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max())
                               .value_or(0));
  params.cache_salt = body.text("cache_salt", context.limits.max_cache_salt_bytes).value_or("");
  params.timeout_s = body.number("timeout", 0.001, context.limits.max_timeout_s);
  params.truncate_prompt_tokens = body.integer("truncate_prompt_tokens", -1, kMaxTokens);
  if (params.truncate_prompt_tokens == 0) {
    body.fail("truncate_prompt_tokens",
              "'truncate_prompt_tokens' is 0; expected -1 or more than 0");
  }
  params.returns_token_ids = body.boolean("return_token_ids").value_or(false);
  read_request_id(body, params);
  if (body.find("prompt_embeds") != nullptr) {
    body.fail("prompt_embeds", "'prompt_embeds' is not supported");
  }
  // Known, and without effect here.
  for (const char* key : {"user", "metadata", "store", "service_tier", "safety_identifier"}) {
    body.skip(key);
  }
}

std::string read_content(Fields& message, const ParseContext& context) {
  const bj::value* content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return message.text("content").value_or("");
  std::string out;
  const bj::array* parts = message.list("content", context.limits.max_parts);
  if (parts == nullptr) return out;
  for (size_t i = 0; i < parts->size(); ++i) {
    if ((*parts)[i].is_string()) {
      out += (*parts)[i].get_string();
      continue;
    }
    auto part = message.element("content", i, (*parts)[i]);
    if (!part) return out;
    const std::string type = part->text("type", 64).value_or("text");
    const bool is_text = type == "text" || type == "input_text" || type == "output_text" ||
                         type == "reasoning_text" || type == "summary_text";
    if (!is_text && type != "refusal") {
      part->fail("type", "'{}' is a kind of content that this model does not read; expected text",
                 part->path_of("type"));
      return out;
    }
    const char* key = is_text ? "text" : "refusal";
    const auto text = part->text(key);
    if (!text) part->fail(key, "'{}' is missing", part->path_of(key));
    out += text.value_or("");
  }
  return out;
}

void read_reasoning_effort(Fields& fields, std::string_view key, ReasoningEffort& effort) {
  const auto word = fields.text(key, 64);
  if (!word) return;
  const auto parsed = parse_reasoning_effort(*word);
  if (parsed) {
    effort = *parsed;
  } else {
    fields.fail(key, "'{}' is not one of none, minimal, low, medium, high, xhigh",
                fields.path_of(key));
  }
}

}  // namespace briar

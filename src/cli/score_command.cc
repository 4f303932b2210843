#include "cli/score_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/json.h"
#include "cli/chat_model.h"
#include "cli/text_io.h"

namespace briar {
namespace {

namespace bj = boost::json;

constexpr int32_t kNumTop = 8;

struct Case {
  std::string name;
  std::vector<int32_t> prompt;
  int64_t generate = 0;
  // Filled in by the engine's callbacks.
  std::vector<OutputToken> tokens;
  std::vector<float> prompt_logprobs;
  std::string error;
};

Case parse_case(const std::string& line, const std::string& place, int64_t generate) {
  auto parsed = json::parse(line, place);
  if (!parsed) throw UserError(parsed.error());
  const bj::object* object = parsed->if_object();
  if (object == nullptr) throw_user_error("{}: expected an object", place);
  Case c;
  c.generate = generate;
  if (const bj::value* name = object->if_contains("name")) {
    if (!name->is_string())
      throw_user_error("{}: name is {}, expected a string", place, bj::serialize(*name));
    c.name = name->as_string();
  }
  const bj::value* prompt = object->if_contains("prompt");
  if (prompt == nullptr || !prompt->is_array())
    throw_user_error("{}: prompt is missing or not a list of token ids", place);
  for (const bj::value& value : prompt->as_array()) {
    const int64_t* id = value.if_int64();
    if (id == nullptr || *id < 0 || *id > INT32_MAX) {
      throw_user_error("{}: prompt[{}] is {}, expected a token id", place, c.prompt.size(),
                       bj::serialize(value));
    }
    c.prompt.push_back(static_cast<int32_t>(*id));
  }
  if (const bj::value* n = object->if_contains("generate")) {
    const int64_t* count = n->if_int64();
    if (count == nullptr || *count < 0)
      throw_user_error("{}: generate is {}, expected a count", place, bj::serialize(*n));
    c.generate = *count;
  }
  return c;
}

std::vector<Case> read_cases(const ScoreOptions& o) {
  TextInput in(o.in);
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; in.next_line(line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    cases.push_back(parse_case(line, fmt::format("{}:{}", in.name(), number), o.generate));
  }
  return cases;
}

int max_seqs_of(const ScoreOptions& o, size_t num_cases) {
  if (o.batch == "all") return static_cast<int>(std::clamp<size_t>(num_cases, 1, 4096));
  int n = 0;
  const char* end = o.batch.data() + o.batch.size();
  const auto [at, code] = std::from_chars(o.batch.data(), end, n);
  if (code != std::errc{} || at != end || n < 1 || n > 4096) {
    throw UserError(
        Error{.message = fmt::format("--batch is {}, expected 1 to 4096, or all", o.batch),
              .param = "--batch"});
  }
  return n;
}

void submit(Engine& engine, Case& c, const std::vector<int32_t>& eos) {
  Request request;
  request.prompt = c.prompt;
  request.sampling.temperature = 0;
  request.max_tokens = std::max<int64_t>(1, c.generate);  // next_top needs one step in any case
  request.stop_token_ids = eos;
  request.num_top_logprobs =
      static_cast<int32_t>(std::min<int64_t>(kNumTop, engine.model().vocab_size));
  request.wants_prompt_logprobs = true;
  request.on_output = [&c](const Output& output) {
    c.tokens.insert(c.tokens.end(), output.tokens.begin(), output.tokens.end());
    if (!output.prompt_logprobs.empty()) c.prompt_logprobs = output.prompt_logprobs;
    if (output.finish_reason == FinishReason::kError) c.error = output.error;
    return true;
  };
  if (auto id = engine.submit(std::move(request)); !id) {
    throw_user_error("case \"{}\": {}", c.name, id.error().message);
  }
}

template <class Values, class Text>
std::string json_list(const Values& values, const Text& text) {
  std::string out = "[";
  for (const auto& value : values) {
    if (out.size() > 1) out += ", ";
    out += text(value);
  }
  return out + "]";
}

std::string case_json(const Case& c) {
  const std::vector<TokenLogprobs> next =
      c.tokens.empty() ? std::vector<TokenLogprobs>() : c.tokens.front().top;
  const auto count = std::min(c.tokens.size(), static_cast<size_t>(c.generate));
  const std::vector<OutputToken> greedy(c.tokens.begin(),
                                        c.tokens.begin() + static_cast<std::ptrdiff_t>(count));
  auto number = [](float x) { return fmt::format("{:.6f}", x); };
  return fmt::format(
      R"({{"name": {}, "prompt_logprobs": {}, "next_top": {}, "greedy": {}, "greedy_logprobs": {}, "margins": {}}})",
      bj::serialize(bj::string(c.name)), json_list(c.prompt_logprobs, number),
      json_list(next,
                [](const TokenLogprobs& t) {
                  return fmt::format("[{}, {:.6f}]", t.token_id, t.logprob);
                }),
      json_list(greedy, [](const OutputToken& t) { return fmt::to_string(t.token_id); }),
      json_list(greedy, [&](const OutputToken& t) { return number(t.logprob); }),
      json_list(greedy, [&](const OutputToken& t) {
        return number(t.top.size() < 2 ? 0.f : t.top[0].logprob - t.top[1].logprob);
      }));
}

void write_cases(const ScoreOptions& o, const std::vector<Case>& cases) {
  TextOutput out(o.out);
  for (const Case& c : cases) out.write(case_json(c) + "\n");
  out.flush();
}

}  // namespace

int run_score(const ScoreOptions& options) {
  ScoreOptions o = options;
  check_flags(o.model);
  check_different_files(o.in, o.out);
  if (o.generate < 0) throw_user_error("--generate is {}, expected 0 or more", o.generate);
  std::vector<Case> cases = read_cases(o);
  o.model.engine.max_seqs = max_seqs_of(o, cases.size());
  const GenerationConfig config = load_generation_config(o.model.engine.model);
  const std::vector<int32_t> eos(config.eos_token_ids.begin(), config.eos_token_ids.end());
  const auto engine = create_engine(o.model);
  for (Case& c : cases) submit(*engine, c, eos);
  engine->drain();
  for (const Case& c : cases) {
    if (!c.error.empty()) throw_user_error("case \"{}\": {}", c.name, c.error);
  }
  write_cases(o, cases);
  return 0;
}

}  // namespace briar

#include "cli/generate_command.h"

#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/json.h"
#include "cli/answer_printer.h"
#include "cli/chat_model.h"
#include "cli/text_io.h"
#include "formats/message_json.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/stop_strings.h"

namespace briar {
namespace {

namespace bj = boost::json;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

struct Prompt {
  std::vector<int32_t> ids;
  ChatModel model;
};

std::string prompt_text(const GenerateOptions& o) {
  if (o.prompt_file.empty()) return o.prompt;
  return TextInput(o.prompt_file).rest();
}

std::vector<int32_t> read_ids(const std::string& path) {
  auto parsed = json::parse(TextInput(path).rest(), path);
  if (!parsed) throw UserError(parsed.error());
  if (!parsed->is_array()) throw_user_error("{}: expected a list of token ids", path);
  std::vector<int32_t> ids;
  for (const bj::value& value : parsed->as_array()) {
    const int64_t* id = value.if_int64();
    if (id == nullptr || *id < 0 || *id > INT32_MAX) {
      throw_user_error("{}: element {} is {}, expected a token id", path, ids.size(),
                       bj::serialize(value));
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

Prompt make_prompt(const GenerateOptions& o) {
  Prompt p{.ids = {}, .model = load_chat_model(o.model.engine.model, o.format)};
  if (!o.token_ids_file.empty()) {
    p.ids = read_ids(o.token_ids_file);
  } else if (o.raw) {
    p.ids = p.model.tokenizer->encode_with_specials(prompt_text(o));
    const auto bos = p.model.tokenizer->bos_id();
    if (bos && (p.ids.empty() || p.ids[0] != *bos)) p.ids.insert(p.ids.begin(), *bos);
  } else {
    PromptRequest request;
    request.messages.push_back(text_message(Role::kUser, prompt_text(o)));
    if (!o.system.empty()) request.instructions = o.system;
    if (!o.reasoning_effort.empty()) {
      auto effort = parse_reasoning_effort(o.reasoning_effort);
      if (!effort) throw UserError(effort.error());
      request.reasoning_effort = *effort;
      request.wants_reasoning = o.reasoning_effort != "none";
    }
    auto ids = p.model.format->render_prompt(request);
    if (!ids) throw UserError(ids.error());
    p.ids = std::move(*ids);
  }
  if (p.ids.empty()) throw_user_error("the prompt is empty");
  return p;
}

// Turns sampled ids into text as they come: the answer, with the reasoning before it in a chat.
class Reader {
 public:
  Reader(const Prompt& prompt, const GenerateOptions& options)
      : prompt_(prompt), is_silent_(options.json), stops_(options.stop) {
    if (!options.raw) parser_ = prompt.model.format->make_parser({});
  }

  // Returns true once a stop string has appeared.
  bool push(int32_t id) {
    if (parser_) {
      std::vector<Delta> deltas;
      parser_->push(id, deltas);
      for (const Delta& d : deltas) take(d);
    } else if (const auto bytes = prompt_.model.tokenizer->token_bytes(id)) {
      take_answer(stops_.push(utf8_.push(*bytes)));
    }
    return stops_.stopped();
  }

  void finish() {
    std::vector<Delta> deltas;
    if (parser_) parser_->finish(deltas);
    for (const Delta& d : deltas) take(d);
    if (!parser_) take_answer(stops_.push(utf8_.finish()));
    take_answer(stops_.finish());
    if (!is_silent_) printer_.finish();  // before the figures on standard error
  }

  const std::string& answer() const { return answer_; }
  const StreamParser* parser() const { return parser_.get(); }

 private:
  void take(const Delta& d) {
    if (d.kind == Delta::Kind::kContent) return take_answer(stops_.push(d.text));
    if (!is_silent_) printer_.print(d);
  }

  void take_answer(std::string text) {
    if (text.empty()) return;
    answer_ += text;
    if (!is_silent_) printer_.print({.tool_name = {}, .text = std::move(text)});
  }

  const Prompt& prompt_;
  const bool is_silent_;
  AnswerPrinter printer_;
  std::unique_ptr<StreamParser> parser_;
  Utf8Stream utf8_;
  StopStrings stops_;
  std::string answer_;
};

struct Answer {
  std::vector<OutputToken> tokens;
  FinishReason finish_reason = FinishReason::kNone;
  Clock::time_point first_token, last_token;
};

Answer answer_prompt(const GenerateOptions& o, const Prompt& prompt, Engine& engine,
                     Reader& reader) {
  Answer answer;
  std::string error;
  Request request;
  request.prompt = prompt.ids;
  request.max_tokens = o.max_tokens;
  request.num_top_logprobs = o.num_top_logprobs;
  request.sampling = sampling_params(o.sampling, prompt.model.defaults);
  if (!o.ignore_eos) request.stop_token_ids = prompt.model.stop_ids;
  request.stops_after = [&reader](int32_t token_id) { return reader.push(token_id); };
  request.on_output = [&](const Output& output) {
    answer.last_token = Clock::now();
    if (answer.tokens.empty()) answer.first_token = answer.last_token;
    answer.tokens.insert(answer.tokens.end(), output.tokens.begin(), output.tokens.end());
    answer.finish_reason = output.finish_reason;
    error = output.error;
    return true;
  };
  if (auto id = engine.submit(std::move(request)); !id) throw UserError(id.error());
  engine.drain();
  reader.finish();
  if (answer.finish_reason == FinishReason::kError) throw_user_error("{}", error);
  return answer;
}

bj::value logprobs_json(const Answer& answer) {
  bj::array out;
  for (const OutputToken& t : answer.tokens) {
    bj::array top;
    for (const TokenLogprobs& l : t.top) top.push_back(bj::array{l.token_id, l.logprob});
    out.push_back(bj::object{{"id", t.token_id}, {"logprob", t.logprob}, {"top", std::move(top)}});
  }
  return out;
}

void print_json(const GenerateOptions& o, const Prompt& prompt, const Answer& answer,
                const Reader& reader, const bj::object& timing) {
  bj::array ids, messages;
  for (const OutputToken& t : answer.tokens) ids.push_back(t.token_id);
  if (reader.parser() != nullptr) {
    for (const ParsedMessage& m : reader.parser()->messages())
      messages.push_back(message_to_json(m.message));
  }
  bj::object out{{"prompt_tokens", prompt.ids.size()},
                 {"prompt_token_ids", bj::value_from(prompt.ids)},
                 {"token_ids", std::move(ids)},
                 {"text", reader.answer()},
                 {"messages", std::move(messages)},
                 {"finish_reason", to_string(answer.finish_reason)},
                 {"timing", timing}};
  if (o.num_top_logprobs >= 0) out["logprobs"] = logprobs_json(answer);
  fmt::print("{}\n", bj::serialize(out));
}

}  // namespace

int run_generate(const GenerateOptions& options) {
  GenerateOptions o = options;
  for (const std::string& stop : o.stop) {
    if (stop.empty()) throw_user_error("--stop is empty");
  }
  check_flags(o.model);
  const Clock::time_point begin = Clock::now();
  const Prompt prompt = make_prompt(o);
  o.model.engine.num_token_ids = prompt.model.tokenizer->vocab_size();
  const auto engine = create_engine(o.model);
  const Clock::time_point loaded = Clock::now();
  Reader reader(prompt, o);
  const Answer answer = answer_prompt(o, prompt, *engine, reader);
  const size_t n = answer.tokens.size();
  const double prefill =
      n == 0 ? seconds(Clock::now() - loaded) : seconds(answer.first_token - loaded);
  const double decode =
      n < 2 ? 0 : static_cast<double>(n - 1) / seconds(answer.last_token - answer.first_token);
  if (o.json) {
    print_json(o, prompt, answer, reader,
               {{"load_s", seconds(loaded - begin)},
                {"prefill_ms", prefill * 1e3},
                {"decode_tok_s", decode}});
  } else {
    print_note("{} prompt tokens in {:.1f} ms, {} tokens at {:.1f} tokens/s, finished: {}\n",
               prompt.ids.size(), prefill * 1e3, n, decode, to_string(answer.finish_reason));
  }
  return 0;
}

}  // namespace briar

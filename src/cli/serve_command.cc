#include "cli/serve_command.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "cli/chat_model.h"
#include "cli/version.h"
#include "engine/scripted_engine.h"
#include "server/server.h"

namespace briar {
namespace {

constexpr std::string_view kScripted = "scripted:";
constexpr std::string_view kLoop = "loop";

// A key of a file or a variable may carry a line's end with it.
std::string_view trim(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string> read_api_keys(const ServeOptions& o) {
  std::vector<std::string> keys = o.api_keys;
  for (const std::string& key : keys) {
    if (trim(key).empty()) throw_user_error("--api-key is empty");
  }
  if (!o.api_key_file.empty()) {
    auto file = MappedFile::open(o.api_key_file);
    if (!file) throw UserError(file.error());
    std::string_view rest = file->text();
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (const auto key = trim(rest.substr(0, end)); !key.empty()) keys.emplace_back(key);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    // A file without a key would open the server to everyone.
    if (keys.empty()) throw_user_error("{}: there is no key in it", o.api_key_file);
  }
  if (const char* key = std::getenv("BRIAR_API_KEY"); key != nullptr && !trim(key).empty()) {
    keys.emplace_back(trim(key));
  }
  return keys;
}

void check_origins(const std::vector<std::string>& origins) {
  for (const std::string& origin : origins) {
    const size_t scheme = origin.find("://");
    if (scheme == origin.npos || origin.find_first_of("/*, ", scheme + 3) != origin.npos) {
      throw_user_error(
          "--cors-origin {}: expected scheme://host or scheme://host:port; there is "
          "no wildcard",
          origin);
    }
  }
}

// An endless answer at the pace of a good model: messages of the final channel, one after another.
ScriptLine loop_line(const Tokenizer& tokenizer) {
  constexpr std::string_view kText =
      "<|channel|>final<|message|>A briar is a thorny plant that grows in hedges and along the "
      "edges "
      "of woods. It is tough, it needs little, and once it has taken hold it does not let go. In "
      "summer its flowers are pale and short-lived; in autumn the hips turn red and stay through "
      "the first frosts, when birds come for them. People have planted it for a very long time to "
      "keep cattle in and strangers out.<|end|><|start|>assistant";
  return {.tokens = tokenizer.encode_with_specials(kText), .delay_us = 10000};
}

std::unique_ptr<Engine> create_scripted_engine(std::string_view what, const Tokenizer& tokenizer) {
  Script script;
  script.model = {.architecture = "Scripted",
                  .model_type = "gpt_oss",
                  .vocab_size = tokenizer.vocab_size(),
                  .max_model_len = 131072};
  script.is_loop = what == kLoop || what.starts_with("loop:");
  if (what == kLoop) {
    script.lines = {loop_line(tokenizer)};
  } else {
    script.lines = read_script(std::string(script.is_loop ? what.substr(5) : what));
    if (script.is_loop && script.lines.front().tokens.empty()) {
      throw_user_error("--engine: a loop needs tokens");
    }
  }
  return make_scripted_engine(std::move(script));
}

std::string model_name(const std::string& folder) {
  const auto path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

SamplingDefaults sampling_defaults(const GenerationConfig& config) {
  const SamplingParams p = sampling_params({}, config);
  return {.temperature = p.temperature,
          .top_p = p.top_p,
          .min_p = p.min_p,
          .top_k = p.top_k,
          .stop_token_ids = {config.eos_token_ids.begin(), config.eos_token_ids.end()}};
}

}  // namespace

int run_serve(const ServeOptions& o) {
  const bool is_scripted = o.engine.starts_with(kScripted);
  if (!o.engine.empty() && !is_scripted) {
    throw_user_error("--engine {}: expected scripted:FILE or scripted:loop", o.engine);
  }
  const std::string& model = o.model.engine.model;
  if (model.empty() && !is_scripted) throw_user_error("--model is missing");
  ServerOptions server{.http = o.http,
                       .model_names = o.model_names,
                       .default_timeout_s = o.request_timeout_s,
                       .always_constrains = o.constrain == "on",
                       .grace_seconds = o.grace_s,
                       .version = kVersion};
  server.http.api_keys = read_api_keys(o);
  check_origins(o.http.cors_origins);
  server.on_ready = [](const std::string& address) {
    fmt::print("listening on {}\n", address);
    std::fflush(stdout);
  };
  if (server.model_names.empty()) {
    server.model_names = {model.empty() ? "scripted" : model_name(model)};
  }
  const ChatModel chat = model.empty() ? bundled_chat_model() : load_chat_model(model);
  if (!model.empty()) server.defaults = sampling_defaults(chat.defaults);
  ModelFlags flags = o.model;
  flags.engine.num_token_ids = chat.tokenizer->vocab_size();
  const auto engine =
      is_scripted ? create_scripted_engine(std::string_view(o.engine).substr(kScripted.size()),
                                           *chat.tokenizer)
                  : create_engine(flags);
  run_server(std::move(server), *engine, chat.tokenizer, chat.format);
  return 0;
}

}  // namespace briar

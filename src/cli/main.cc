// The command line: flags to option structs, and exceptions to exit codes. The only file that
// includes CLI11.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>

#include "base/check.h"
#include "base/log.h"
#include "base/result.h"
#include "cli/chat_command.h"
#include "cli/doctor_command.h"
#include "cli/format_command.h"
#include "cli/generate_command.h"
#include "cli/score_command.h"
#include "cli/serve_command.h"
#include "cli/simulate_command.h"
#include "cli/tokenize_command.h"
#include "cli/version.h"

namespace briar {
namespace {

constexpr int kUsersFault = 1, kWrongUsage = 2, kOurBug = 3;

void add_model_flags(CLI::App& app, ModelFlags& f) {
  app.add_option("--model", f.engine.model, "Model folder, or GGUF file")
      ->required()
      ->type_name("DIR|FILE");
  app.add_option("--device", f.engine.device, "cpu")->capture_default_str();
  app.add_option("--precision", f.engine.precision,
                 "fp32, bf16, mxfp4 or native (auto: native for a GGUF file, else bf16)")
      ->capture_default_str();
  app.add_option("--head-precision", f.head_precision,
                 "Precision of the head (follows --precision)");
  app.add_option("--kv-precision", f.engine.kv_precision, "bf16 or fp32 (follows --precision)");
  app.add_option("--page-size", f.engine.page_size, "Tokens of a KV page")->capture_default_str();
  app.add_option("--chunk", f.engine.chunk, "Most tokens of one sequence in a step")
      ->capture_default_str();
  app.add_option("--max-batch-tokens", f.engine.max_batch_tokens, "Most tokens of a step")
      ->capture_default_str();
  app.add_option("--max-seqs", f.engine.max_seqs, "Most sequences running at once")
      ->capture_default_str();
  app.add_option("--max-model-len", f.engine.max_model_len,
                 "Most tokens of a sequence (0: what fits)")
      ->capture_default_str();
  app.add_option("--kv-cache-bytes", f.engine.kv_cache_bytes,
                 "Size of the KV cache (0: from free memory)")
      ->capture_default_str();
  app.add_option("--threads", f.engine.num_threads, "Compute threads (0: one a physical core)")
      ->capture_default_str();
  app.add_option("--batch-invariant", f.batch_invariant, "on or off; the CPU kernels always are")
      ->capture_default_str();
  app.add_option("--overlap", f.overlap, "on or off: plan a step while the one before it runs")
      ->capture_default_str();
  app.add_option("--step-trace", f.engine.step_trace,
                 "File for trace events of every step (Perfetto, chrome://tracing)");
  app.add_option("--cuda-graphs", f.cuda_graphs, "off")->capture_default_str();
  app.add_option("--prefix-cache", f.prefix_cache, "on or off: reuse the KV of common beginnings")
      ->capture_default_str();
  app.add_flag("--quiet", f.quiet, "No memory plan and no progress on standard error");
}

void add_sampling_flags(CLI::App& app, SamplingFlags& s) {
  app.add_option("--temperature", s.temperature, "0 = greedy (default: generation_config.json)");
  app.add_option("--top-p", s.top_p, "Keep the likeliest tokens up to this mass");
  app.add_option("--top-k", s.top_k, "Keep this many likeliest tokens; 0 = all");
  app.add_option("--min-p", s.min_p, "Drop tokens below this share of the likeliest");
  app.add_option("--seed", s.seed, "Same seed, same tokens (default: random)");
}

void add_generate(CLI::App& app, int& code) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* sub = app.add_subcommand("generate", "Answer one prompt");
  add_model_flags(*sub, o->model);
  CLI::Option_group* prompt = sub->add_option_group("prompt");
  prompt->add_option("--prompt", o->prompt, "A user message");
  prompt->add_option("--prompt-file", o->prompt_file, "A file with the user message");
  prompt->add_option("--token-ids", o->token_ids_file, "A JSON list of ids, taken as they are");
  prompt->require_option(1);
  sub->add_option("--system", o->system, "Instructions for the model");
  sub->add_option("--reasoning-effort", o->reasoning_effort, "low, medium or high");
  sub->add_option("--format", o->format, "Chat format (default: the model's own)");
  sub->add_flag("--raw", o->raw, "Take the text as it is, special tokens included");
  add_sampling_flags(*sub, o->sampling);
  sub->add_option("--max-tokens", o->max_tokens, "Most new tokens")->capture_default_str();
  sub->add_option("--stop", o->stop, "Stop before this text (several allowed)");
  sub->add_option("--logprobs", o->num_top_logprobs,
                  "With --json: log-probabilities, and this many alternatives");
  sub->add_flag("--ignore-eos", o->ignore_eos, "Go on after the end of the answer");
  sub->add_flag("--json", o->json, "One JSON object on standard output");
  sub->callback([o, &code] { code = run_generate(*o); });
}

void add_chat(CLI::App& app, int& code) {
  auto o = std::make_shared<ChatOptions>();
  CLI::App* sub = app.add_subcommand("chat", "A conversation in the terminal");
  add_model_flags(*sub, o->model);
  sub->add_option("--format", o->format, "Chat format (default: the model's own)");
  sub->add_option("--system", o->system, "Instructions for the model");
  sub->add_option("--reasoning-effort", o->reasoning_effort, "none, low, medium or high");
  add_sampling_flags(*sub, o->sampling);
  sub->add_option("--max-tokens", o->max_tokens, "Most new tokens of an answer")
      ->capture_default_str();
  sub->add_flag("--echo", o->echo, "Write the questions too");
  sub->callback([o, &code] { code = run_chat(*o); });
}

void add_score(CLI::App& app, int& code) {
  auto o = std::make_shared<ScoreOptions>();
  CLI::App* sub = app.add_subcommand("score", "Log-probabilities of prompts by token id");
  add_model_flags(*sub, o->model);
  sub->add_option("--in", o->in, "JSON lines {name, prompt, generate?}; - = standard input")
      ->required();
  sub->add_option("--out", o->out, "JSON lines; - = standard output")->required();
  sub->add_option("--batch", o->batch, "Sequences together: a number, or all")
      ->capture_default_str();
  sub->add_option("--generate", o->generate, "Greedy tokens for lines that do not say")
      ->capture_default_str();
  sub->callback([o, &code] { code = run_score(*o); });
}

void add_tokenize(CLI::App& app, int& code) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* sub = app.add_subcommand("tokenize", "Text to token ids and back");
  sub->add_option("--tokenizer", o->tokenizer,
                  "Model folder or GGUF file (default: the bundled o200k_harmony)");
  sub->add_option("--jsonl", o->jsonl,
                  "Lines {text} to encode or {ids} to decode; - = standard input");
  sub->add_option("--out", o->out, "Where the lines go (default: standard output)");
  sub->add_flag("--specials", o->specials, "Spellings of special tokens become their ids");
  sub->add_option("--bench", o->bench_file, "Encode this file on one thread and print MB/s");
  sub->callback([o, &code] { code = run_tokenize(*o); });
}

void add_format(CLI::App& app, int& code) {
  CLI::App* format = app.add_subcommand("format", "Render and parse chat formats");
  format->require_subcommand(1);
  auto add = [&](const char* name, const char* help, FormatOptions::Mode mode) {
    auto o = std::make_shared<FormatOptions>();
    o->mode = mode;
    CLI::App* sub = format->add_subcommand(name, help);
    sub->add_option("--format", o->format, "harmony, chatml, llama3 or mistral")
        ->capture_default_str();
    sub->add_option("--tokenizer", o->tokenizer,
                    "Model folder or GGUF file (default: the bundled o200k_harmony)");
    sub->add_flag("--strict-library", o->strict_library, "Exactly what the reference library does");
    sub->add_option("--in", o->in, "JSON lines (default: standard input)");
    sub->add_option("--out", o->out, "JSON lines (default: standard output)");
    sub->callback([o, &code] { code = run_format(*o); });
  };
  add("render", "Conversations to token ids", FormatOptions::Mode::kRender);
  add("parse", "Token ids to messages", FormatOptions::Mode::kParse);
  add("schema", "Tools as the model reads them", FormatOptions::Mode::kSchema);
}

void add_simulate(CLI::App& app, int& code) {
  auto o = std::make_shared<SimulateOptions>();
  CLI::App* sub =
      app.add_subcommand("simulate", "The scheduler over a trace of requests, without a model");
  sub->add_option("--trace", o->trace,
                  "JSON lines {arrival_ms, prompt_len, output_len, hash_ids?}, plain or .xz");
  sub->add_option("--requests", o->requests, "Instead of a trace: so many made-up requests");
  sub->add_option("--seed", o->seed, "Of the made-up requests")->capture_default_str();
  sub->add_option("--load", o->load, "Scale arrivals to this share of the capacity");
  sub->add_flag("--serial", o->serial, "One request after another");
  sub->add_option("--pages", o->pages, "Pages of KV (0: as many as it takes)")
      ->capture_default_str();
  sub->add_option("--page-size", o->page_size, "Tokens of a page")->capture_default_str();
  sub->add_option("--limit", o->limit, "Only so many requests of the trace");
  sub->add_option("--window", o->window, "Add a window kind of so many tokens")
      ->capture_default_str();
  sub->add_option("--max-seqs", o->max_seqs, "Most sequences at once")->capture_default_str();
  sub->add_option("--max-batch-tokens", o->max_batch_tokens, "Most tokens of a step")
      ->capture_default_str();
  sub->add_option("--chunk", o->chunk, "Most tokens of one sequence in a step")
      ->capture_default_str();
  sub->add_flag("!--no-prefix-cache", o->prefix_cache, "Without the prefix cache");
  sub->add_flag("!--no-checks", o->checks, "Without checking invariants: to time planning");
  sub->add_flag("!--no-overlap", o->overlaps, "Plan a step when the one before it is done");
  sub->add_option("--draft-tokens", o->draft_tokens, "Draft tokens a sequence in decode steps")
      ->capture_default_str();
  sub->add_flag("--json", o->json, "One JSON object");
  sub->callback([o, &code] { code = run_simulate(*o); });
}

void add_listening_flags(CLI::App& app, HttpOptions& h) {
  app.add_option("--host", h.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", h.port, "0 = any that is free")->capture_default_str();
  app.add_option("--unix-socket", h.unix_socket, "Listen on this path instead of host and port");
  app.add_option("--tls-cert", h.tls_cert, "PEM file: serve HTTPS with this certificate chain");
  app.add_option("--tls-key", h.tls_key, "PEM file with its key");
  app.add_option("--http-threads", h.num_threads, "Threads of the server")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--cors-origin", h.cors_origins,
                 "Let pages of this origin use the server (several allowed)");
  HttpLimits& l = h.limits;
  app.add_option("--max-connections", l.max_connections, "More get 503")->capture_default_str();
  app.add_option("--max-body-bytes", l.max_body_bytes, "Of one request")->capture_default_str();
  app.add_option("--max-header-bytes", l.max_header_bytes,
                 "Of one request, its first line included")
      ->capture_default_str();
  app.add_option("--max-pending-bytes", l.max_pending_bytes,
                 "Of one stream, not yet taken by its client")
      ->capture_default_str();
  const auto seconds = [&](const char* flag, double& value, const char* help) {
    app.add_option(flag, value, help)->capture_default_str()->check(CLI::Range(0.05, 86400.0));
  };
  seconds("--header-timeout", l.header_seconds, "Seconds for a request's header");
  seconds("--body-timeout", l.body_seconds, "Seconds for its body");
  seconds("--idle-timeout", l.idle_seconds, "Seconds between two requests of a connection");
  seconds("--write-timeout", l.write_seconds, "Seconds without a byte taken by the client");
  seconds("--ping-interval", l.ping_seconds, "Seconds after which a silent stream says something");
}

void add_serve(CLI::App& app, int& code) {
  auto o = std::make_shared<ServeOptions>();
  CLI::App* sub = app.add_subcommand("serve", "OpenAI's API over HTTP");
  add_model_flags(*sub, o->model);
  sub->get_option("--model")->required(false);
  sub->add_option("--engine", o->engine,
                  "scripted:F.jsonl or scripted:loop: a script answers instead of a model");
  add_listening_flags(*sub, o->http);
  sub->add_option("--api-key", o->api_keys, "Ask for this key (several allowed)");
  sub->add_option("--api-key-file", o->api_key_file, "Ask for one of the keys in it, one a line");
  sub->add_option("--served-model-name", o->model_names,
                  "What the model is called (several allowed; default: the folder's name)");
  sub->add_option("--max-waiting", o->model.engine.max_waiting,
                  "Most requests that wait; more get 429 (0: no bound)")
      ->capture_default_str();
  sub->add_option("--request-timeout", o->request_timeout_s,
                  "Deadline in seconds of requests that set none (0: no deadline)")
      ->capture_default_str();
  sub->add_option("--constrain", o->constrain,
                  "Which chats are bound to the format's grammar: on = all, auto = those that ask "
                  "for a shape or must call a tool")
      ->check(CLI::IsMember({"auto", "on"}))
      ->capture_default_str();
  sub->add_option("--grace", o->grace_s, "Seconds that answers get to finish after SIGTERM")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0));
  sub->callback([o, &code] { code = run_serve(*o); });
}

void add_doctor(CLI::App& app, int& code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("doctor", "What this machine has and what will be used");
  sub->add_flag("--json", *json, "One JSON object");
  sub->callback([json, &code] { code = run_doctor(*json); });
}

int run(int argc, char** argv) {
  CLI::App app("Briar: a serving engine for large language models");
  app.set_version_flag("--version", std::string("briar ") + kVersion);
  app.require_subcommand(1);
  std::string log_level = "warning";
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->capture_default_str()
      ->each([](const std::string& name) {
        if (!set_log_level(name))
          throw CLI::ValidationError("--log-level", name + " is not a level");
      });
  int code = 0;
  add_generate(app, code);
  add_chat(app, code);
  add_score(app, code);
  add_tokenize(app, code);
  add_format(app, code);
  add_serve(app, code);
  add_simulate(app, code);
  add_doctor(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kWrongUsage;
  }
  return code;
}

}  // namespace
}  // namespace briar

namespace {

// Never throws: there is nobody left to tell that standard error cannot be written.
int report(const char* prefix, const char* what, int code) {
  std::fprintf(stderr, "briar: %s%s\n", prefix, what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  // Reading standard input must not flush standard output behind our back: a failed flush would go
  // unnoticed.
  std::cin.tie(nullptr);
  try {
    const int code = briar::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report("", "standard output: cannot write", briar::kUsersFault);
    }
    return code;
  } catch (const briar::UserError& e) {
    return report("", e.what(), briar::kUsersFault);
  } catch (const std::system_error& e) {
    // {fmt} and the streams throw it for output that cannot be written.
    return report("cannot write: ", e.what(), briar::kUsersFault);
  } catch (const std::exception& e) {
    return report("internal error, please report it: ", e.what(), briar::kOurBug);
  }
}

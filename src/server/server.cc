#include "server/server.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "grammar/grammar.h"
#include "server/api/openai_api.h"
#include "server/http/http_server.h"
#include "server/metrics.h"
#include "server/page/page.h"
#include "server/signals.h"

namespace briar {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Asks the engine now and then whether it has failed, which it says in drain() alone.
class EngineWatch {
 public:
  EngineWatch(Engine& engine, StopSignals& signals)
      : thread_([this, &engine, &signals] { watch(engine, signals); }) {}
  ~EngineWatch() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  bool has_failed() const {
    std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }
  void rethrow() const {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void watch(Engine& engine, StopSignals& signals) {
    std::unique_lock lock(mutex_);
    while (!stop_ && !failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        engine.drain();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      if (failure_) {
        signals.wake();
      } else {
        changed_.wait_for(lock, milliseconds(200), [&] { return stop_; });
      }
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

HttpHandler answer_json(std::string body) {
  return [body = std::move(body)](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->send(200, "application/json", body, {{"Cache-Control", "no-store"}});
  };
}

void add_health_routes(HttpServer& server, const EngineWatch& watch, const std::string& version) {
  const auto readiness = [&](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    const char* status = server.is_draining() ? "shutting down"
                         : watch.has_failed() ? "the engine has failed"
                                              : "ready";
    reply->send(std::string_view(status) == "ready" ? 200 : 503, "application/json",
                fmt::format(R"({{"status":"{}"}})", status), {{"Cache-Control", "no-store"}});
  };
  const auto add_open = [&](const char* path, HttpHandler handler) {
    server.add({.method = "GET",
                .path = path,
                .handler = std::move(handler),
                .is_open = true,
                .serves_in_drain = true});
  };
  add_open("/health", readiness);
  add_open("/ready", readiness);
  add_open("/live", answer_json(R"({"status":"alive"})"));
  server.add({.method = "GET",
              .path = "/version",
              .handler = answer_json(fmt::format(R"({{"version":"{}"}})", version)),
              .serves_in_drain = true});
}

void add_metrics_routes(HttpServer& server, const Metrics& metrics) {
  server.add({.method = "GET",
              .path = "/metrics",
              .handler =
                  [&metrics](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                    reply->send(200, "text/plain; version=0.0.4; charset=utf-8",
                                metrics.prometheus_text());
                  },
              .serves_in_drain = true});
  server.add({.method = "GET",
              .path = "/gauges",
              .handler =
                  [&metrics](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                    reply->send(200, "application/json", metrics.gauges_json(),
                                {{"Cache-Control", "no-store"}});
                  },
              .serves_in_drain = true});
}

// Waits until no answer is under way. False: `longest` was not enough. A second signal does not
// come back.
bool wait_for_answers(HttpServer& server, const OpenAiApi& api, StopSignals& signals,
                      double longest_seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(longest_seconds));
  while (server.num_active() + api.num_background() > 0) {
    if (Clock::now() >= end) return false;
    if (signals.wait(milliseconds(20))) std::_Exit(EXIT_SUCCESS);
  }
  return true;
}

// Readiness goes off, answers get their time, what is left is ended in its own language.
void shut_down(HttpServer& server, OpenAiApi& api, StopSignals& signals, double grace_seconds) {
  constexpr double kLastWordsSeconds = 2;  // to take an error event in
  server.begin_drain();
  log_info("shutting down: {} answers under way", server.num_active() + api.num_background());
  if (!wait_for_answers(server, api, signals, grace_seconds)) {
    log_warning("{} answers are ended unfinished", server.num_active() + api.num_background());
    server.end_answers();
    api.end_background();
    wait_for_answers(server, api, signals, kLastWordsSeconds);
  }
  server.stop();
}

}  // namespace

void run_server(ServerOptions options, Engine& engine, std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const Format> format) {
  CHECK(!options.model_names.empty(), "a server needs a name for its model");
  Metrics metrics(options.model_names.front(), engine);
  StopSignals signals;
  const EngineWatch watch(engine, signals);
  options.http.on_answered = [&metrics](std::string_view method, std::string_view route, int status,
                                        double seconds) {
    metrics.http_answered(method, route, status, seconds);
  };
  HttpServer server(std::move(options.http));
  auto grammars = GrammarCompiler::create(format, tokenizer);
  if (!grammars) throw UserError(grammars.error());
  OpenAiApi api({.engine = &engine,
                 .tokenizer = std::move(tokenizer),
                 .format = std::move(format),
                 .model_names = options.model_names,
                 .defaults = options.defaults,
                 .default_timeout_s = options.default_timeout_s,
                 .grammars = std::move(*grammars),
                 .always_constrains = options.always_constrains,
                 .limits = options.limits,
                 .observer = &metrics});
  for (HttpRoute& route : api.routes()) server.add(std::move(route));
  add_health_routes(server, watch, options.version);
  add_metrics_routes(server, metrics);
  add_page_routes(server);
  server.start();
  if (options.on_ready) options.on_ready(server.address());
  while (!signals.wait(std::chrono::hours(1)) && !watch.has_failed()) {
  }
  shut_down(server, api, signals, watch.has_failed() ? 1 : options.grace_seconds);
  watch.rethrow();
  // What was cancelled ends within a step; until then the engine calls what lives here.
  engine.drain();
}

}  // namespace briar

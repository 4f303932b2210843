#include "engine/scripted_engine.h"

#include <algorithm>
#include <boost/json.hpp>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace briar {
namespace {

namespace bj = boost::json;
using Clock = std::chrono::steady_clock;

int32_t read_id(const bj::value& value, const std::string& where) {
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id > INT32_MAX) {
    throw_user_error("{}: expected a token id, found {}", where, bj::serialize(value));
  }
  return static_cast<int32_t>(*id);
}

float read_logprob(const bj::value& value, const std::string& where) {
  if (value.is_null()) return -std::numeric_limits<float>::infinity();
  boost::system::error_code error;
  const double number = value.to_number<double>(error);
  if (error) throw_user_error("{}: expected a log-probability or null", where);
  return static_cast<float>(number);
}

std::vector<TokenLogprobs> read_token_logprobs(const bj::value& value, int32_t token_id,
                                               const std::string& where) {
  if (!value.is_array()) return {{token_id, read_logprob(value, where)}};
  std::vector<TokenLogprobs> out;
  for (const bj::value& pair : value.get_array()) {
    if (!pair.is_array() || pair.get_array().size() != 2) {
      throw_user_error("{}: expected [id, logprob] pairs", where);
    }
    out.push_back({read_id(pair.get_array()[0], where), read_logprob(pair.get_array()[1], where)});
  }
  return out;
}

ScriptLine read_line(const bj::value& json, const std::string& where) {
  if (!json.is_object() || !json.get_object().contains("tokens")) {
    throw_user_error("{}: expected an object with tokens", where);
  }
  const bj::object& object = json.get_object();
  ScriptLine line;
  if (!object.at("tokens").is_array()) throw_user_error("{}: tokens is not a list", where);
  for (const bj::value& id : object.at("tokens").get_array()) {
    line.tokens.push_back(read_id(id, where + ", tokens"));
  }
  if (const bj::value* logprobs = object.if_contains("logprobs");
      logprobs && !logprobs->is_null()) {
    if (!logprobs->is_array() || logprobs->get_array().size() != line.tokens.size()) {
      throw_user_error("{}: logprobs must be a list as long as tokens", where);
    }
    for (size_t i = 0; i < line.tokens.size(); ++i) {
      line.logprobs.push_back(read_token_logprobs(logprobs->get_array()[i], line.tokens[i],
                                                  fmt::format("{}, logprobs[{}]", where, i)));
    }
  }
  if (const bj::value* delay = object.if_contains("delay_us")) {
    boost::system::error_code error;
    line.delay_us = static_cast<int64_t>(delay->to_number<double>(error));
    if (error || line.delay_us < 0) throw_user_error("{}: delay_us must be 0 or more", where);
  }
  return line;
}

struct Running {
  Request request;
  const ScriptLine* line = nullptr;
  Clock::time_point submitted;
  int64_t num_tokens = 0;
};

class ScriptedEngine final : public Engine {
 public:
  explicit ScriptedEngine(Script script) : script_(std::move(script)) {
    thread_ = std::thread([this] { loop(); });
  }
  ~ScriptedEngine() override;

  const ModelDescription& model() const override { return script_.model; }
  Result<uint64_t> submit(Request request) override;
  void cancel(uint64_t request_id) override;
  void drain() override;
  EngineStats stats() const override;

 private:
  // When a request's next token is due; ids of requests that have ended are passed over.
  using Due = std::pair<Clock::time_point, uint64_t>;

  Status check(const Request& request) const;
  void loop();
  void take_messages(std::unique_lock<std::mutex>& lock);
  void advance(uint64_t id, Clock::time_point now);
  OutputToken token_of(const Running& running) const;
  void finish(uint64_t id, Output output);
  Clock::time_point next_due(const Running& running, Clock::time_point from) const;

  const Script script_;

  mutable std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::vector<std::pair<uint64_t, Running>> submitted_;
  std::vector<uint64_t> cancelled_;
  bool stop_ = false;
  uint64_t next_id_ = 1;
  int64_t num_open_ = 0;
  EngineStats stats_;

  // The thread's own:
  std::map<uint64_t, Running> running_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::thread thread_;
};

ScriptedEngine::~ScriptedEngine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

Status ScriptedEngine::check(const Request& r) const {
  const auto bad = [](const char* param, std::string message) {
    return Error{.message = std::move(message), .param = param};
  };
  if (r.prompt.empty()) return bad("prompt", "the prompt is empty");
  if (r.max_tokens < 0) return bad("max_tokens", "max_tokens must be 0 or more");
  const auto num_prompt = static_cast<int64_t>(r.prompt.size());
  if (num_prompt + (r.max_tokens > 0 ? 1 : 0) > script_.model.max_model_len) {
    return bad("prompt",
               fmt::format("the prompt has {} tokens; prompt and answer together may have {}",
                           num_prompt, script_.model.max_model_len));
  }
  if (r.wants_prompt_logprobs || r.wants_hidden_states || r.keeps_kv) {
    return bad("prompt_logprobs", "a scripted engine runs no prompts");
  }
  return Ok{};
}

Result<uint64_t> ScriptedEngine::submit(Request request) {
  if (Status status = check(request); !status) return status.error();
  request.max_tokens =
      std::min(request.max_tokens,
               script_.model.max_model_len - static_cast<int64_t>(request.prompt.size()));
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    if (!script_.is_loop && next_id_ > script_.lines.size()) {
      return Error{
          .message = fmt::format("the script's {} lines are used up", script_.lines.size()),
          .param = {},
          .http_status = 503};
    }
    id = next_id_++;
    const ScriptLine& line = script_.lines[script_.is_loop ? 0 : id - 1];
    submitted_.emplace_back(
        id, Running{.request = std::move(request), .line = &line, .submitted = Clock::now()});
    ++num_open_;
    ++stats_.num_waiting;
  }
  work_.notify_one();
  return id;
}

void ScriptedEngine::cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  work_.notify_one();
}

void ScriptedEngine::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return num_open_ == 0; });
}

EngineStats ScriptedEngine::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void ScriptedEngine::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto has_messages = [&] { return stop_ || !submitted_.empty() || !cancelled_.empty(); };
    if (due_.empty()) {
      work_.wait(lock, has_messages);
    } else {
      work_.wait_until(lock, due_.top().first, has_messages);
    }
    take_messages(lock);
    lock.unlock();
    // One turn: whoever is due by now, once each.
    const Clock::time_point now = Clock::now();
    std::vector<uint64_t> turn;
    for (; !due_.empty() && due_.top().first <= now; due_.pop()) turn.push_back(due_.top().second);
    for (const uint64_t id : turn) advance(id, now);
    lock.lock();
  }
  take_messages(lock);
  lock.unlock();
  while (!running_.empty()) {
    finish(running_.begin()->first, {.finish_reason = FinishReason::kCancelled});
  }
}

void ScriptedEngine::take_messages(std::unique_lock<std::mutex>& lock) {
  auto submitted = std::exchange(submitted_, {});
  const auto cancelled = std::exchange(cancelled_, {});
  const auto num_submitted = static_cast<int64_t>(submitted.size());
  stats_.num_waiting -= num_submitted;
  stats_.num_running += num_submitted;
  for (auto& [id, running] : submitted) {
    stats_.num_prompt_tokens += running.request.prompt.size();
    due_.emplace(next_due(running, running.submitted), id);
    running_.emplace(id, std::move(running));
  }
  if (cancelled.empty()) return;
  lock.unlock();  // callbacks may call back
  for (const uint64_t id : cancelled) finish(id, {.finish_reason = FinishReason::kCancelled});
  lock.lock();
}

Clock::time_point ScriptedEngine::next_due(const Running& running, Clock::time_point from) const {
  Clock::time_point due = from + std::chrono::microseconds(running.line->delay_us);
  if (running.request.deadline) due = std::min(due, *running.request.deadline);
  return due;
}

OutputToken ScriptedEngine::token_of(const Running& running) const {
  const ScriptLine& line = *running.line;
  const size_t place = static_cast<size_t>(running.num_tokens) % line.tokens.size();
  OutputToken token{.token_id = line.tokens[place]};
  const int32_t num_top = running.request.num_top_logprobs;
  if (num_top < 0 || line.logprobs.empty()) return token;
  const auto& listed = line.logprobs[place];
  token.logprob = -std::numeric_limits<float>::infinity();
  for (const TokenLogprobs& l : listed) {
    if (l.token_id == token.token_id) token.logprob = l.logprob;
  }
  token.top.assign(listed.begin(),
                   listed.begin() + std::min<ptrdiff_t>(num_top, std::ssize(listed)));
  return token;
}

void ScriptedEngine::advance(uint64_t id, Clock::time_point now) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  Running& running = found->second;
  const Request& request = running.request;
  Output output;
  output.request_id = id;
  if (request.deadline && now >= *request.deadline) {
    output.finish_reason = FinishReason::kDeadline;
    return finish(id, std::move(output));
  }
  const auto length = static_cast<int64_t>(running.line->tokens.size());
  const bool is_over = length == 0 || (!script_.is_loop && running.num_tokens >= length);
  if (request.max_tokens == 0 || is_over) {
    output.finish_reason = FinishReason::kLength;
    return finish(id, std::move(output));
  }
  output.tokens.push_back(token_of(running));
  ++running.num_tokens;
  const int32_t token_id = output.tokens.back().token_id;
  const auto& stops = request.stop_token_ids;
  const bool may_stop = running.num_tokens >= request.sampling.min_tokens;
  const bool by_text = request.stops_after && request.stops_after(token_id);
  if ((by_text && may_stop) || std::find(stops.begin(), stops.end(), token_id) != stops.end()) {
    output.finish_reason = FinishReason::kStop;
  } else if (running.num_tokens >= request.max_tokens ||
             (!script_.is_loop && running.num_tokens >= length)) {
    output.finish_reason = FinishReason::kLength;
  }
  if (output.finish_reason != FinishReason::kNone) return finish(id, std::move(output));
  due_.emplace(next_due(running, now), id);
  const bool goes_on = !request.on_output || request.on_output(std::move(output));
  {
    std::lock_guard lock(mutex_);
    ++stats_.num_generated_tokens;
  }
  if (goes_on) return;
  finish(id, {.finish_reason = FinishReason::kCancelled,
              .error = "the reader is too slow: its request was cancelled"});
}

void ScriptedEngine::finish(uint64_t id, Output output) {
  const auto node = running_.extract(id);
  if (node.empty()) return;
  output.request_id = id;
  const auto num_tokens = output.tokens.size();
  const Request& request = node.mapped().request;
  {
    // Before the callback: whoever hears of the end finds it counted.
    std::lock_guard lock(mutex_);
    stats_.num_generated_tokens += num_tokens;
    --stats_.num_running;
  }
  if (request.on_output) request.on_output(std::move(output));
  std::lock_guard lock(mutex_);
  if (--num_open_ == 0) idle_.notify_all();
}

}  // namespace

std::vector<ScriptLine> read_script(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) throw UserError(file.error());
  std::vector<ScriptLine> lines;
  std::string_view rest = file->text();
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    auto json = json::parse(text, where);
    if (!json) throw UserError(json.error());
    lines.push_back(read_line(*json, where));
  }
  if (lines.empty()) throw_user_error("{}: the script has no lines", path);
  return lines;
}

std::unique_ptr<Engine> make_scripted_engine(Script script) {
  CHECK(!script.lines.empty(), "a script needs a line");
  return std::make_unique<ScriptedEngine>(std::move(script));
}

}  // namespace briar

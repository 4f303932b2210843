// The engine's thread: plan a step, have the runner run it, hand out what it gave, again.
#include "briar/engine.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "engine/loader.h"
#include "engine/runner.h"
#include "engine/sampling_stage.h"
#include "engine/scheduler.h"
#include "engine/step_builder.h"

namespace briar {

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone: return "none";
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kDeadline: return "deadline";
    case FinishReason::kError: return "error";
  }
  return "unknown";
}

namespace {

class LocalEngine final : public Engine {
 public:
  explicit LocalEngine(const EngineOptions& options);
  ~LocalEngine() override;

  const ModelDescription& model() const override { return description_; }
  Result<uint64_t> submit(Request request) override;
  void cancel(uint64_t id) override;
  void drain() override;
  EngineStats stats() const override;

 private:
  using Sequences = std::map<uint64_t, std::unique_ptr<Sequence>>;

  Status check_request(const Request& request) const;
  void loop();
  bool take_messages();  // false: time to stop
  void step();
  void take_result(const ScheduledSequence& scheduled, const SequenceResult& result);
  void finish(Sequence& sequence, FinishReason reason, Output output);
  void fail_all(std::exception_ptr failure, const std::string& why);
  void publish_stats();

  EngineOptions options_;
  LoadedModel loaded_;
  ModelDescription description_;
  int64_t num_token_ids_;
  // Used by the engine's thread alone once it runs.
  Runner runner_;
  Scheduler scheduler_;
  Sequences sequences_;
  uint64_t next_step_ = 1;
  EngineStats counters_;  // stats_ is its published copy

  mutable std::mutex mutex_;
  std::condition_variable work_;  // there are messages
  std::condition_variable idle_;  // num_open_ fell to zero
  std::vector<std::unique_ptr<Sequence>> submitted_;
  std::vector<uint64_t> cancelled_;
  bool stop_ = false;
  uint64_t next_id_ = 1;
  int64_t num_open_ = 0;  // submitted and not yet finished
  std::exception_ptr failure_;
  EngineStats stats_;

  std::thread thread_;
};

RunnerConfig runner_config(const EngineOptions& options, const LoadedModel& loaded,
                           int64_t num_token_ids) {
  return {.memory = loaded.memory,
          .precision = loaded.precision,
          .kv_dtype = loaded.kv_dtype,
          .page_size = options.page_size,
          .max_seqs = options.max_seqs,
          .max_batch_tokens = options.max_batch_tokens,
          .num_token_ids = num_token_ids};
}

SchedulerConfig scheduler_config(const EngineOptions& options, const LoadedModel& loaded) {
  return {.max_seqs = options.max_seqs,
          .max_batch_tokens = options.max_batch_tokens,
          .chunk = options.chunk,
          .page_size = options.page_size,
          .num_pages = loaded.memory.num_pages,
          .window = {0, loaded.model->info().window},
          .caches_prefixes = options.caches_prefixes};
}

Error bad_request(const char* param, std::string message) {
  return Error{.message = std::move(message), .param = param};
}

LocalEngine::LocalEngine(const EngineOptions& options)
    : options_(options),
      loaded_(load_model(options)),
      num_token_ids_(options.num_token_ids > 0
                         ? std::min(options.num_token_ids, loaded_.model->info().vocab_size)
                         : loaded_.model->info().vocab_size),
      runner_(*loaded_.device, *loaded_.stream, *loaded_.model,
              runner_config(options, loaded_, num_token_ids_)),
      scheduler_(scheduler_config(options, loaded_)) {
  const ModelInfo& info = loaded_.model->info();
  description_ = {.architecture = info.architecture,
                  .model_type = info.model_type,
                  .vocab_size = info.vocab_size,
                  .hidden_size = info.hidden_size,
                  .max_model_len = loaded_.memory.max_model_len,
                  .bytes_per_token = info.bytes_per_token};
  publish_stats();
  thread_ = std::thread([this] { loop(); });
}

LocalEngine::~LocalEngine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

Status LocalEngine::check_request(const Request& r) const {
  const SamplingParams& s = r.sampling;
  if (r.prompt.empty()) return bad_request("prompt", "the prompt is empty");
  if (r.max_tokens < 0)
    return bad_request("max_tokens",
                       fmt::format("max_tokens is {}, expected 0 or more", r.max_tokens));
  const auto num_prompt = static_cast<int64_t>(r.prompt.size());
  if (num_prompt + (r.max_tokens > 0 ? 1 : 0) > description_.max_model_len) {
    return bad_request(
        "prompt", fmt::format("the prompt has {} tokens; prompt and answer together may have {}",
                              num_prompt, description_.max_model_len));
  }
  for (size_t i = 0; i < r.prompt.size(); ++i) {
    if (r.prompt[i] < 0 || r.prompt[i] >= description_.vocab_size) {
      return bad_request("prompt",
                         fmt::format("prompt[{}] is the id {}, outside the vocabulary of {}", i,
                                     r.prompt[i], description_.vocab_size));
    }
  }
  // Written so that a NaN is out of range too.
  if (!(s.temperature >= 0 && s.temperature <= 100)) {
    return bad_request("temperature",
                       fmt::format("temperature is {}, expected 0 to 100", s.temperature));
  }
  if (!(s.top_p > 0 && s.top_p <= 1))
    return bad_request("top_p",
                       fmt::format("top_p is {}, expected more than 0 and at most 1", s.top_p));
  if (!(s.min_p >= 0 && s.min_p <= 1))
    return bad_request("min_p", fmt::format("min_p is {}, expected 0 to 1", s.min_p));
  if (s.top_k < 0)
    return bad_request("top_k", fmt::format("top_k is {}, expected 0 (off) or more", s.top_k));
  if (r.num_top_logprobs < -1) {
    return bad_request(
        "logprobs",
        fmt::format("{} likeliest tokens asked for, expected -1 (no log-probabilities) or more",
                    r.num_top_logprobs));
  }
  if (r.num_top_logprobs > std::min<int64_t>(kMaxTopLogprobs, num_token_ids_)) {
    return bad_request("logprobs", fmt::format("{} likeliest tokens asked for, expected at most {}",
                                               r.num_top_logprobs,
                                               std::min<int64_t>(kMaxTopLogprobs, num_token_ids_)));
  }
  return Ok{};
}

Result<uint64_t> LocalEngine::submit(Request request) {
  if (Status status = check_request(request); !status) return status.error();
  // A sequence ends at the model's length whatever max_tokens says.
  request.max_tokens = std::min<int64_t>(
      request.max_tokens, description_.max_model_len - static_cast<int64_t>(request.prompt.size()));
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    if (failure_) return Error{.message = "the engine has failed", .http_status = 500};
    if (stop_) return Error{.message = "the engine is shutting down", .http_status = 503};
    id = next_id_++;
    submitted_.push_back(
        std::make_unique<Sequence>(id, std::move(request), scheduler_.make_pages()));
    ++num_open_;
  }
  work_.notify_one();
  return id;
}

void LocalEngine::cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  work_.notify_one();
}

void LocalEngine::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return num_open_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

EngineStats LocalEngine::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void LocalEngine::loop() {
  try {
    while (take_messages()) step();
    while (!sequences_.empty()) {
      finish(*sequences_.begin()->second, FinishReason::kCancelled, {});
    }
  } catch (const std::exception& e) {
    fail_all(std::current_exception(), e.what());
  } catch (...) {
    fail_all(std::current_exception(), "a callback threw something that is no exception");
  }
}

// Waits for work; moves what callers have left into the scheduler.
bool LocalEngine::take_messages() {
  std::vector<std::unique_ptr<Sequence>> submitted;
  std::vector<uint64_t> cancelled;
  bool stop = false;
  {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [&] {
      return stop_ || !sequences_.empty() || !submitted_.empty() || !cancelled_.empty();
    });
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    stop = stop_;
  }
  for (auto& sequence : submitted) {
    scheduler_.add(sequence.get());
    sequences_.emplace(sequence->id, std::move(sequence));
  }
  for (const uint64_t id : cancelled) {
    if (const auto it = sequences_.find(id); it != sequences_.end())
      finish(*it->second, FinishReason::kCancelled, {});
  }
  return !stop;
}

void LocalEngine::step() {
  if (sequences_.empty()) return;
  const SchedulerOutput output = scheduler_.schedule();
  CHECK(!output.sequences.empty(), "{} sequences and nothing to run", sequences_.size());
  const std::vector<uint8_t> packet = build_step_packet(next_step_, output);
  const StepResult result = runner_.run(packet);
  CHECK_EQ(result.step_id, next_step_, "answer to another step");
  ++next_step_;
  counters_.num_preemptions += static_cast<uint64_t>(output.num_preempted);
  for (size_t i = 0; i < output.sequences.size(); ++i)
    take_result(output.sequences[i], result.sequences[i]);
  if (options_.checks_invariants) scheduler_.check_invariants();
  publish_stats();
}

void LocalEngine::take_result(const ScheduledSequence& scheduled, const SequenceResult& result) {
  Sequence& s = *scheduled.sequence;
  const bool was_prompt = s.num_computed < s.num_prompt();
  scheduler_.confirm(scheduled);
  CHECK_EQ(static_cast<int64_t>(result.length), s.num_computed, "row {}: the device's length",
           s.row);
  if (was_prompt && s.num_computed >= s.num_prompt()) {
    counters_.num_cached_tokens += static_cast<uint64_t>(s.num_cached_tokens);
  }
  counters_.num_prompt_tokens += was_prompt ? static_cast<uint64_t>(scheduled.num_tokens) : 0;
  if (!result.prompt_logprobs.empty()) {
    s.prompt_logprobs.insert(s.prompt_logprobs.end(), result.prompt_logprobs.begin(),
                             result.prompt_logprobs.end());
    s.num_prompt_scored += static_cast<int64_t>(result.prompt_logprobs.size());
  }
  if (result.has_nan) {
    Output output;
    output.error = "the model computed a NaN: its weights or this prompt overflow the precision";
    return finish(s, FinishReason::kError, std::move(output));
  }
  Output output;
  for (const SampledToken& sampled : result.sampled) {
    OutputToken token{.token_id = sampled.token_id, .logprob = sampled.logprob, .top = {}};
    for (const TokenLogprob& t : sampled.top) token.top.push_back({t.token_id, t.logprob});
    output.tokens.push_back(std::move(token));
    s.tokens.push_back(sampled.token_id);
    s.is_last_token_on_device = true;
    ++counters_.num_generated_tokens;
  }
  if (s.num_computed < s.num_prompt()) return;
  CHECK(!s.request.wants_prompt_logprobs || s.num_prompt_scored == s.num_prompt() - 1,
        "sequence {}: {} log-probabilities for {} prompt tokens", s.id, s.num_prompt_scored,
        s.num_prompt());
  output.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
  const auto& stops = s.request.stop_token_ids;
  const auto ends_with = [&](int32_t id) {
    const bool by_text = s.request.stops_after && s.request.stops_after(id);
    return by_text || std::find(stops.begin(), stops.end(), id) != stops.end();
  };
  if (!output.tokens.empty() && ends_with(output.tokens.back().token_id)) {
    return finish(s, FinishReason::kStop, std::move(output));
  }
  if (s.num_generated() >= s.request.max_tokens)
    return finish(s, FinishReason::kLength, std::move(output));
  if (output.tokens.empty() && output.prompt_logprobs.empty()) return;
  output.request_id = s.id;
  output.num_cached_tokens = s.num_cached_tokens;
  if (s.request.on_output) s.request.on_output(output);
}

void LocalEngine::finish(Sequence& sequence, FinishReason reason, Output output) {
  scheduler_.remove(&sequence);
  const auto node = sequences_.extract(sequence.id);
  output.request_id = sequence.id;
  output.finish_reason = reason;
  output.num_cached_tokens = sequence.num_cached_tokens;
  if (sequence.request.on_output) sequence.request.on_output(output);
  publish_stats();  // before drain() can return
  std::lock_guard lock(mutex_);
  if (--num_open_ == 0) idle_.notify_all();
}

// The scheduler's state cannot be trusted any more: requests are told, nothing is given back.
// Callbacks run without the lock: they may call submit() and cancel().
void LocalEngine::fail_all(std::exception_ptr failure, const std::string& why) {
  log_error("the engine has failed: {}", why);
  {
    std::lock_guard lock(mutex_);
    failure_ = failure;
    for (auto& sequence : submitted_) sequences_.emplace(sequence->id, std::move(sequence));
    submitted_.clear();
  }
  for (auto& [id, sequence] : sequences_) {
    Output output;
    output.request_id = id;
    output.finish_reason = FinishReason::kError;
    output.error = "internal error: " + why;
    try {
      if (sequence->request.on_output) sequence->request.on_output(output);
    } catch (...) {
      log_error("the callback of request {} threw", id);
    }
  }
  sequences_.clear();
  std::lock_guard lock(mutex_);
  num_open_ = 0;
  idle_.notify_all();
}

void LocalEngine::publish_stats() {
  counters_.num_steps = next_step_ - 1;
  counters_.num_running = scheduler_.num_running();
  counters_.num_waiting = scheduler_.num_waiting();
  counters_.num_pages = counters_.num_free_pages = 0;
  for (const KvKind kind : {KvKind::kFull, KvKind::kWindow}) {
    counters_.num_pages += scheduler_.pool(kind).num_pages();
    counters_.num_free_pages += scheduler_.pool(kind).num_available();
  }
  std::lock_guard lock(mutex_);
  stats_ = counters_;
}

}  // namespace

std::unique_ptr<Engine> Engine::create(const EngineOptions& options) {
  return std::make_unique<LocalEngine>(options);
}

}  // namespace briar

// The engine's thread: plan a step while the one before it runs, take what that one gave, hand it
// out, again. docs/engine_contract.md says who owns what and what holds in between.
#include "briar/engine.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "engine/kv_handle.h"
#include "engine/loader.h"
#include "engine/mailbox.h"
#include "engine/request_check.h"
#include "engine/runner_thread.h"
#include "engine/scheduler.h"
#include "engine/step_builder.h"
#include "engine/step_trace.h"

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
  void cancel(uint64_t id) override { mailbox_->cancel(id); }
  void drain() override;
  EngineStats stats() const override;

 private:
  struct StepInFlight {
    uint64_t id;
    SchedulerOutput plan;
    double launch_us;
  };

  // The loop and its phases, all on the engine's thread.
  void loop();
  bool take_mail();  // false: time to stop
  void advance();
  bool plan_step();  // false: nothing was launched
  void take_step();
  void give_masks();
  void account(const StepInFlight& step, const StepResult& result);

  void take_result(const ScheduledSequence& scheduled, const SequenceResult& result);
  void collect(Sequence& s, const ScheduledSequence& scheduled, const SequenceResult& result,
               Output& output);
  FinishReason finish_reason(Sequence& s, const std::vector<SampledToken>& sampled);
  void end_overdue();
  void end(Sequence& s, FinishReason reason, Output output);
  void hand_out(Sequence& s, Output output);
  std::shared_ptr<const KvHandle> keep_kv(Sequence& s);
  void forget_ended();
  void fail_all(std::exception_ptr failure, const std::string& why);
  void publish_stats();

  EngineOptions options_;
  LoadedModel loaded_;
  ModelDescription description_;
  int64_t num_token_ids_;
  uint64_t fingerprint_;
  // Used by the engine's thread alone once it runs.
  StepTrace trace_;
  Runner runner_;
  Scheduler scheduler_;
  StepPacketBuilder packet_builder_;
  std::map<uint64_t, std::unique_ptr<Sequence>> sequences_;
  std::deque<StepInFlight> in_flight_;
  std::vector<uint64_t> ended_;  // still in sequences_, for steps in flight name them
  bool waits_for_quiet_ = false;
  uint64_t next_step_ = 1;
  uint64_t next_kept_ = 1;
  double device_free_us_ = 0;  // when the last step ended; 0 = there was no work then
  EngineStats counters_;       // stats_ is its published copy

  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  mutable std::mutex mutex_;
  std::condition_variable idle_;  // num_open_ fell to zero
  bool is_stopping_ = false;
  uint64_t next_id_ = 1;
  int64_t num_open_ = 0;  // submitted and not yet ended
  std::exception_ptr failure_;
  EngineStats stats_;

  std::unique_ptr<RunnerThread> runner_thread_;
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

// FNV-1a of what decides the bytes of a KV page.
uint64_t fingerprint_of(const EngineOptions& options, const LoadedModel& loaded) {
  const ModelInfo& info = loaded.model->info();
  const std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", options.model, info.architecture, options.precision,
                  static_cast<int>(loaded.kv_dtype), options.page_size, info.layer_kinds.size(),
                  info.num_kv_heads, info.head_dim);
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

LocalEngine::LocalEngine(const EngineOptions& options)
    : options_(options),
      loaded_(load_model(options)),
      num_token_ids_(options.num_token_ids > 0
                         ? std::min(options.num_token_ids, loaded_.model->info().vocab_size)
                         : loaded_.model->info().vocab_size),
      fingerprint_(fingerprint_of(options, loaded_)),
      trace_(options.step_trace),
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
  runner_thread_ = std::make_unique<RunnerThread>(runner_);
  thread_ = std::thread([this] { loop(); });
}

LocalEngine::~LocalEngine() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  mailbox_->stop();
  thread_.join();
}

Result<uint64_t> LocalEngine::submit(Request request) {
  if (Status status = check_request(request, description_, num_token_ids_); !status) {
    return status.error();
  }
  // A sequence ends at the model's length whatever max_tokens says.
  request.max_tokens = std::min<int64_t>(
      request.max_tokens, description_.max_model_len - static_cast<int64_t>(request.prompt.size()));
  std::lock_guard lock(mutex_);
  if (failure_) return Error{.message = "the engine has failed", .http_status = 500};
  if (is_stopping_) return Error{.message = "the engine is shutting down", .http_status = 503};
  if (options_.max_waiting > 0 && num_open_ - stats_.num_running >= options_.max_waiting) {
    return Error{.message = fmt::format("{} requests are waiting already", options_.max_waiting),
                 .http_status = 429};
  }
  const uint64_t id = next_id_++;
  auto sequence = std::make_unique<Sequence>(id, std::move(request), scheduler_.make_pages());
  sequence->submit_us = steady_now_us();
  ++num_open_;
  mailbox_->submit(std::move(sequence));  // under the lock: ids reach the engine in order
  return id;
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
    while (take_mail()) advance();
    while (!in_flight_.empty()) take_step();
    for (auto& [id, sequence] : sequences_) {
      if (!sequence->has_ended) end(*sequence, FinishReason::kCancelled, {});
    }
  } catch (const std::exception& e) {
    fail_all(std::current_exception(), e.what());
  } catch (...) {
    fail_all(std::current_exception(), "a callback threw something that is no exception");
  }
}

// Waits for work; moves what callers have left into the scheduler.
bool LocalEngine::take_mail() {
  const bool has_work = !sequences_.empty();
  if (!has_work) device_free_us_ = 0;
  Mailbox::Mail mail = mailbox_->take(!has_work);
  for (auto& sequence : mail.submitted) {
    scheduler_.add(sequence.get());
    sequences_.emplace(sequence->id, std::move(sequence));
  }
  for (const uint64_t id : mail.cancelled) {
    const auto it = sequences_.find(id);
    if (it != sequences_.end() && !it->second->has_ended) {
      end(*it->second, FinishReason::kCancelled, {});
    }
  }
  for (const uint64_t name : mail.dropped_handles) scheduler_.drop_kept_pages(name);
  if (!mail.submitted.empty() || !mail.dropped_handles.empty()) publish_stats();
  return !mail.stop;
}

// One turn: plans a step behind the one that runs, then takes that one's results. Without overlap
// every step is taken before the next one is planned.
void LocalEngine::advance() {
  end_overdue();
  forget_ended();
  if (sequences_.empty()) return;
  const size_t depth = options_.overlaps ? 2 : 1;
  const bool may_plan = !waits_for_quiet_ || in_flight_.empty();
  const bool launched = may_plan && plan_step();
  if (launched && in_flight_.size() < depth) return;
  CHECK(!in_flight_.empty(), "{} sequences and nothing to run", sequences_.size());
  take_step();
}

bool LocalEngine::plan_step() {
  const double begin_us = steady_now_us();
  SchedulerOutput plan = scheduler_.schedule(in_flight_.empty());
  waits_for_quiet_ = plan.wants_quiet;
  counters_.num_preemptions += static_cast<uint64_t>(plan.num_preempted);
  if (plan.sequences.empty()) return false;
  const uint64_t id = next_step_++;
  const double scheduled_us = steady_now_us();
  std::vector<uint8_t> packet =
      build_step_packet(packet_builder_, id, plan, runner_thread_->spent_buffer());
  const double built_us = steady_now_us();
  runner_thread_->launch(std::move(packet));
  int64_t num_tokens = 0;
  for (const ScheduledSequence& scheduled : plan.sequences) {
    Sequence& s = *scheduled.sequence;
    ++s.num_outstanding_steps;
    num_tokens += scheduled.num_tokens;
    if (s.queue_us >= 0) continue;
    s.queue_us = scheduled_us - s.submit_us;
    counters_.num_queried_tokens += static_cast<uint64_t>(s.num_prompt());
    counters_.num_cached_tokens += static_cast<uint64_t>(s.num_cached_tokens);
  }
  const auto num_seqs = static_cast<int64_t>(plan.sequences.size());
  in_flight_.push_back({.id = id, .plan = std::move(plan), .launch_us = built_us});
  if (in_flight_.size() == 1) give_masks();
  const double end_us = steady_now_us();
  using enum StepTrace::Lane;
  trace_.event(kEngine, "schedule", begin_us, scheduled_us, id, num_tokens, num_seqs);
  trace_.event(kEngine, "build", scheduled_us, built_us, id, num_tokens, num_seqs);
  trace_.event(kEngine, "launch", built_us, end_us, id, num_tokens, num_seqs);
  counters_.engine_busy_us += end_us - begin_us;
  return true;
}

// The oldest step in flight may draw as soon as the tokens before it are known: now.
void LocalEngine::give_masks() {
  const StepInFlight& step = in_flight_.front();
  MaskPacket packet{.step_id = step.id, .masks = {}};
  for (const ScheduledSequence& scheduled : step.plan.sequences) {
    const Sequence& s = *scheduled.sequence;
    if (!scheduled.samples || !s.request.constraint) continue;
    // What has ended since the step was planned may draw anything: nobody will see it.
    std::vector<uint32_t> mask((static_cast<size_t>(description_.vocab_size) + 31) / 32,
                               s.has_ended ? ~uint32_t{0} : 0);
    if (!s.has_ended) s.request.constraint->fill_mask(mask);
    packet.masks.push_back(std::move(mask));
  }
  if (!packet.masks.empty()) runner_thread_->give_masks(std::move(packet));
}

void LocalEngine::take_step() {
  const StepResult result = runner_thread_->wait();
  const double begin_us = steady_now_us();
  const StepInFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  CHECK_EQ(result.step_id, step.id, "answer to another step");
  for (size_t i = 0; i < step.plan.sequences.size(); ++i) {
    take_result(step.plan.sequences[i], result.sequences[i]);
  }
  if (!in_flight_.empty()) give_masks();
  if (options_.checks_invariants) scheduler_.check_invariants();
  account(step, result);
  const double end_us = steady_now_us();
  trace_.event(StepTrace::Lane::kEngine, "output", begin_us, end_us, step.id, 0,
               static_cast<int64_t>(step.plan.sequences.size()));
  counters_.engine_busy_us += end_us - begin_us;
  publish_stats();
}

void LocalEngine::account(const StepInFlight& step, const StepResult& result) {
  counters_.device_busy_us += result.end_us - result.begin_us;
  if (device_free_us_ > 0) counters_.device_idle_us += result.begin_us - device_free_us_;
  device_free_us_ = result.end_us;
  if (!trace_.is_on()) return;
  int64_t num_tokens = 0;
  for (const ScheduledSequence& s : step.plan.sequences) num_tokens += s.num_tokens;
  const auto num_seqs = static_cast<int64_t>(step.plan.sequences.size());
  using enum StepTrace::Lane;
  trace_.event(kDevice, "forward", result.begin_us, result.sampling_us, step.id, num_tokens,
               num_seqs);
  trace_.event(kDevice, "sample", result.sampling_us, result.end_us, step.id, num_tokens, num_seqs);
  trace_.counter("device idle us", result.end_us, counters_.device_idle_us);
  trace_.counter("running", result.end_us, static_cast<double>(scheduler_.num_running()));
  trace_.counter("waiting", result.end_us, static_cast<double>(scheduler_.num_waiting()));
}

void LocalEngine::take_result(const ScheduledSequence& scheduled, const SequenceResult& result) {
  Sequence& s = *scheduled.sequence;
  --s.num_outstanding_steps;
  if (s.has_ended) {  // planned before its end was known
    counters_.num_moot_tokens += static_cast<uint64_t>(scheduled.num_tokens);
    return;
  }
  const bool was_prompt = s.num_computed < s.num_prompt();
  counters_.num_prompt_tokens += was_prompt ? static_cast<uint64_t>(scheduled.num_tokens) : 0;
  if (result.has_nan || result.has_no_choice) {
    Output output;
    output.error = result.has_nan
                       ? "the model computed a NaN: its weights or this prompt overflow the "
                         "precision"
                       : "no token may come next: the constraint and the allowed ids exclude all";
    return end(s, FinishReason::kError, std::move(output));
  }
  std::vector<int32_t> drawn;
  for (const SampledToken& t : result.sampled) drawn.push_back(t.token_id);
  scheduler_.confirm(scheduled, drawn);
  CHECK_EQ(static_cast<int64_t>(result.length), s.num_computed, "row {}: the device's length",
           s.row);
  Output output;
  collect(s, scheduled, result, output);
  const FinishReason reason = finish_reason(s, result.sampled);
  if (reason != FinishReason::kNone) return end(s, reason, std::move(output));
  if (output.tokens.empty() && output.prompt_logprobs.empty() && output.hidden_states.empty())
    return;
  hand_out(s, std::move(output));
}

// What the step gave this sequence, as its reader sees it.
void LocalEngine::collect(Sequence& s, const ScheduledSequence& scheduled,
                          const SequenceResult& result, Output& output) {
  for (const SampledToken& sampled : result.sampled) {
    OutputToken token{.token_id = sampled.token_id, .logprob = sampled.logprob, .top = {}};
    for (const TokenLogprob& t : sampled.top) token.top.push_back({t.token_id, t.logprob});
    output.tokens.push_back(std::move(token));
    ++counters_.num_generated_tokens;
  }
  s.prompt_logprobs.insert(s.prompt_logprobs.end(), result.prompt_logprobs.begin(),
                           result.prompt_logprobs.end());
  s.num_prompt_scored += static_cast<int64_t>(result.prompt_logprobs.size());
  if (!result.hidden_states.empty()) {
    const int64_t reported =
        std::clamp<int64_t>(s.num_hidden_reported - scheduled.begin, 0, scheduled.num_tokens);
    output.hidden_states.assign(result.hidden_states.begin() + reported * description_.hidden_size,
                                result.hidden_states.end());
    s.num_hidden_reported = std::max(s.num_hidden_reported, scheduled.begin + scheduled.num_tokens);
  }
  if (s.num_computed < s.num_prompt()) return;
  CHECK(!s.request.wants_prompt_logprobs || s.num_prompt_scored == s.num_prompt() - 1,
        "sequence {}: {} log-probabilities for {} prompt tokens", s.id, s.num_prompt_scored,
        s.num_prompt());
  output.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
}

FinishReason LocalEngine::finish_reason(Sequence& s, const std::vector<SampledToken>& sampled) {
  const auto& stops = s.request.stop_token_ids;
  for (const SampledToken& t : sampled) {
    if (s.request.constraint) s.request.constraint->accept(t.token_id);
    const bool is_stop_text = s.request.stops_after && s.request.stops_after(t.token_id) &&
                              s.num_generated() >= s.request.sampling.min_tokens;
    const bool is_stop_id = std::find(stops.begin(), stops.end(), t.token_id) != stops.end();
    if (is_stop_text || is_stop_id) return FinishReason::kStop;
  }
  const bool is_full =
      s.num_computed >= s.num_prompt() && s.num_generated() >= s.request.max_tokens;
  return is_full ? FinishReason::kLength : FinishReason::kNone;
}

void LocalEngine::end_overdue() {
  const auto now = std::chrono::steady_clock::now();
  for (auto& [id, s] : sequences_) {
    if (!s->has_ended && s->request.deadline && *s->request.deadline <= now) {
      end(*s, FinishReason::kDeadline, {});
    }
  }
}

std::shared_ptr<const KvHandle> LocalEngine::keep_kv(Sequence& s) {
  const uint64_t name = next_kept_++;
  const int64_t num_tokens = scheduler_.keep_pages(s, name);
  return std::make_shared<LocalKvHandle>(
      num_tokens, fingerprint_, [mailbox = mailbox_, name] { mailbox->drop_handle(name); });
}

void LocalEngine::end(Sequence& s, FinishReason reason, Output output) {
  output.finish_reason = reason;
  const bool has_kv = reason == FinishReason::kStop || reason == FinishReason::kLength;
  if (s.request.keeps_kv && has_kv) output.kv = keep_kv(s);
  scheduler_.remove(&s);
  s.has_ended = true;
  ended_.push_back(s.id);
  hand_out(s, std::move(output));
  // What the caller gave is given back now, not when the last step in flight has gone by.
  s.request.on_output = nullptr;
  s.request.stops_after = nullptr;
  publish_stats();  // before drain() can return
  std::lock_guard lock(mutex_);
  if (--num_open_ == 0) idle_.notify_all();
}

void LocalEngine::hand_out(Sequence& s, Output output) {
  output.request_id = s.id;
  output.num_cached_tokens = s.num_cached_tokens;
  output.queue_ms = std::max(0.0, s.queue_us) / 1e3;
  if (!s.request.on_output) return;
  if (s.request.on_output(std::move(output)) || s.has_ended) return;
  Output last;
  last.error = "the reader of this request took no more";
  end(s, FinishReason::kCancelled, std::move(last));
}

void LocalEngine::forget_ended() {
  std::erase_if(ended_, [&](uint64_t id) {
    const auto it = sequences_.find(id);
    if (it->second->num_outstanding_steps > 0) return false;
    sequences_.erase(it);
    return true;
  });
}

// The scheduler's state cannot be trusted any more: requests are told, nothing is given back.
// Callbacks run without the lock: they may call submit() and cancel().
void LocalEngine::fail_all(std::exception_ptr failure, const std::string& why) {
  log_error("the engine has failed: {}", why);
  {
    std::lock_guard lock(mutex_);
    failure_ = failure;  // submit() refuses from here on
  }
  Mailbox::Mail mail = mailbox_->take(false);
  for (auto& sequence : mail.submitted) sequences_.emplace(sequence->id, std::move(sequence));
  for (auto& [id, sequence] : sequences_) {
    if (sequence->has_ended) continue;
    Output output;
    output.request_id = id;
    output.finish_reason = FinishReason::kError;
    output.error = "internal error: " + why;
    try {
      if (sequence->request.on_output) sequence->request.on_output(std::move(output));
    } catch (...) {
      log_error("the callback of request {} threw", id);
    }
  }
  runner_thread_.reset();  // no step reads what goes now
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

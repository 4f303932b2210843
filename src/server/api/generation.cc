#include "server/api/generation.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace briar {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// The engine's way to end a choice without an answer, as an error for the client.
std::optional<Error> error_of(const Output& output) {
  switch (output.finish_reason) {
    case FinishReason::kDeadline:
      return Error{.message = "the request's deadline passed before its answer was complete",
                   .param = {},
                   .http_status = 504,
                   .code = "deadline_exceeded"};
    case FinishReason::kError:
    case FinishReason::kCancelled:
      return Error{.message = output.error.empty() ? "the request was cancelled" : output.error,
                   .param = {},
                   .http_status = 500,
                   .code = {}};
    default: return std::nullopt;
  }
}

}  // namespace

Generation::Generation(Engine& engine, Post post, Events events, ApiObserver* observer)
    : engine_(engine), post_(std::move(post)), events_(std::move(events)), observer_(observer) {}

Result<std::shared_ptr<Generation>> Generation::start(Engine& engine, std::vector<ChoicePlan> plans,
                                                      int64_t max_queued_tokens, Post post,
                                                      Events events, ApiObserver* observer) {
  CHECK(!plans.empty(), "a generation needs a choice");
  std::shared_ptr<Generation> self(
      new Generation(engine, std::move(post), std::move(events), observer));
  self->choices_.resize(plans.size());
  self->num_open_ = plans.size();
  for (size_t i = 0; i < plans.size(); ++i) {
    if (auto status = self->submit(i, std::move(plans[i]), max_queued_tokens); !status) {
      self->cancel();
      return status.error();
    }
  }
  return self;
}

Status Generation::submit(size_t idx, ChoicePlan plan, int64_t max_queued_tokens) {
  Choice& choice = choices_[idx];
  Request& request = plan.request;
  choice.reader = plan.make_reader();
  choice.stop_token_ids = request.stop_token_ids;
  choice.status.num_prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (plan.has_stop_strings) {
    std::shared_ptr<AnswerReader> twin = plan.make_reader();
    request.stops_after = [twin, deltas = std::vector<Delta>()](int32_t id) mutable {
      deltas.clear();
      twin->push(id, deltas);
      return twin->stopped();
    };
  }
  auto self = shared_from_this();
  choice.queue = std::make_shared<OutputQueue>(max_queued_tokens, [weak = weak_from_this(), idx] {
    // Alive, for the engine is calling; what is posted keeps it so after the engine let go.
    auto self = weak.lock();
    if (self) self->post_([self, idx] { self->drain(idx); });
  });
  request.on_output = [self, queue = choice.queue](Output output) {
    return queue->push(std::move(output));
  };
  auto id = engine_.submit(std::move(request));
  if (!id) return id.error();
  choice.request_id = *id;
  return Ok{};
}

void Generation::drain(size_t idx) {
  const auto self = shared_from_this();  // an event may drop the last other owner
  while (auto output = choices_[idx].queue->try_pop()) {
    if (is_silent_) {
      observe(choices_[idx], *output);  // nobody reads it any more; it is counted all the same
    } else {
      take(idx, std::move(*output));
    }
  }
}

void Generation::take(size_t idx, Output output) {
  Choice& choice = choices_[idx];
  observe(choice, output);
  if (const auto error = error_of(output)) return fail(*error);
  std::vector<Delta> deltas;
  std::vector<ReadToken> tokens;
  ChoiceStatus& status = choice.status;
  status.num_cached_tokens = std::max(status.num_cached_tokens, output.num_cached_tokens);
  if (!output.prompt_logprobs.empty()) status.prompt_logprobs = std::move(output.prompt_logprobs);
  tokens.reserve(output.tokens.size());
  for (OutputToken& token : output.tokens) {
    choice.reader->push(token.token_id, deltas);
    tokens.push_back({std::move(token), choice.reader->is_latest_answer()});
  }
  status.num_tokens = choice.reader->num_tokens();
  if (output.finish_reason != FinishReason::kNone) {
    if (!tokens.empty()) status.stop_token = tokens.back().token.token_id;
    end_choice(choice, output, deltas);
  }
  status.num_reasoning_tokens = choice.reader->num_reasoning_tokens();
  events_.on_progress(idx, deltas, tokens);
  if (num_open_ > 0 || is_silent_) return;
  is_silent_ = true;
  events_.on_end(nullptr);
}

void Generation::end_choice(Choice& choice, const Output& output, std::vector<Delta>& deltas) {
  ChoiceStatus& status = choice.status;
  const auto& stops = choice.stop_token_ids;
  const bool is_stop_token =
      output.finish_reason == FinishReason::kStop && status.stop_token &&
      std::find(stops.begin(), stops.end(), *status.stop_token) != stops.end();
  if (!is_stop_token) status.stop_token.reset();
  // A stop token closes an open message: what is incomplete now is one that never opened.
  status.is_cut_short = is_stop_token && !choice.reader->parser().is_complete() &&
                        !choice.reader->parser().open_kind();
  choice.reader->finish(deltas);
  if (choice.reader->stopped()) status.stop_string = choice.reader->matched_stop();
  status.finish_reason = output.finish_reason;
  const ParserWarnings& warnings = choice.reader->parser().warnings();
  if (warnings.total() > 0) {
    log_debug("request {}: {} tokens skipped, {} headers repaired", choice.request_id,
              warnings.skipped_tokens, warnings.repaired_headers);
  }
  --num_open_;
}

void Generation::observe(Choice& choice, const Output& output) {
  if (observer_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  const auto num_tokens = static_cast<int64_t>(output.tokens.size());
  if (num_tokens > 0) {
    if (!choice.latest) {
      observer_->on_first_tokens(seconds(now - begin_));
    } else {
      observer_->on_more_tokens(seconds(now - *choice.latest), num_tokens);
    }
    choice.latest = now;
  }
  if (output.finish_reason == FinishReason::kNone) return;
  observer_->on_choice_end({.finish_reason = output.finish_reason,
                            .num_prompt_tokens = choice.status.num_prompt_tokens,
                            .num_cached_tokens = output.num_cached_tokens,
                            .num_tokens = choice.reader->num_tokens() + num_tokens,
                            .queue_s = output.queue_ms / 1e3,
                            .total_s = seconds(now - begin_)});
}

void Generation::fail(const Error& error) {
  is_silent_ = true;
  cancel_engine();
  events_.on_end(&error);
}

void Generation::cancel() {
  is_silent_ = true;
  cancel_engine();
}

void Generation::cancel_engine() {
  for (const Choice& choice : choices_) {
    if (choice.request_id != 0) engine_.cancel(choice.request_id);
  }
}

}  // namespace briar

#include "server/api/response_run.h"

#include <utility>

#include "server/api/error_json.h"

namespace briar {
namespace {

// As AnswerReply: late enough for an early error to have a status of its own.
constexpr double kLatestBeginSeconds = 2;

ResponseBuilder::EventSink sink_of(const ResponseRun::Setup& setup, ResponseRun& run,
                                   void (ResponseRun::*client_gone)()) {
  if (!setup.reply || !setup.request.chat.params.is_stream) return {};
  return
      [reply = setup.reply.get(), &run, client_gone](std::string_view type, std::string_view json) {
        if (!reply->send_event(type, json)) (run.*client_gone)();
      };
}

}  // namespace

ResponseRun::ResponseRun(Setup setup)
    : setup_(std::move(setup)),
      builder_(setup_.api->config, setup_.head, setup_.request,
               sink_of(setup_, *this, &ResponseRun::client_gone)) {}

Status ResponseRun::start(ChoicePlan plan) {
  const auto status = submit(std::move(plan));
  if (!setup_.reply) {
    if (status) store(true);
    return status;
  }
  if (!status) {
    send_error(*setup_.reply, status.error());
    return status;
  }
  setup_.reply->on_closed([weak = weak_from_this()] {
    if (auto run = weak.lock()) run->client_gone();
  });
  if (setup_.request.chat.params.is_stream) {
    setup_.reply->post_after(kLatestBeginSeconds, [weak = weak_from_this()] {
      if (auto run = weak.lock()) run->begin_stream();
    });
  }
  return status;
}

Status ResponseRun::submit(ChoicePlan plan) {
  const auto self = shared_from_this();
  Generation::Post post;
  if (setup_.reply) {
    post = [reply = setup_.reply](std::function<void()> work) { reply->post(std::move(work)); };
  } else {
    post = [weak = std::weak_ptr(setup_.api->worker)](std::function<void()> work) {
      if (auto worker = weak.lock()) worker->post(std::move(work));
    };
  }
  Generation::Events events{
      .on_progress =
          [self](size_t, std::span<const Delta> deltas, std::span<const ReadToken> tokens) {
            if (self->has_ended_) return;
            self->begin_stream();
            self->builder_.take(deltas, tokens);
          },
      .on_end = [self](const Error* error) { self->end(error); }};
  std::vector<ChoicePlan> plans;
  plans.push_back(std::move(plan));
  const ApiConfig& config = setup_.api->config;
  auto generation =
      Generation::start(*config.engine, std::move(plans), config.limits.max_queued_tokens,
                        std::move(post), std::move(events), config.observer);
  if (!generation) return generation.error();
  generation_ = *generation;
  return Ok{};
}

void ResponseRun::begin_stream() {
  if (has_begun_ || has_ended_ || !setup_.reply || !setup_.request.chat.params.is_stream) return;
  has_begun_ = true;
  setup_.reply->begin_events(setup_.headers);
  builder_.begin();
}

void ResponseRun::end(const Error* error) {
  if (has_ended_) return;
  const auto generation = generation_.lock();
  if (error != nullptr) {
    builder_.fail(*error);
  } else {
    builder_.finish(generation->status(0), usage_of(*generation, 1));
  }
  if (has_ended_) return;  // the client went away at the last event
  has_ended_ = true;
  if (setup_.request.is_stored && (error == nullptr || !setup_.reply)) store(false);
  if (!setup_.reply) return forget();
  if (has_begun_) {
    setup_.reply->end_events();
  } else if (error != nullptr) {
    send_error(*setup_.reply, *error);
  } else {
    send_json(*setup_.reply, builder_.json(), setup_.headers);
  }
}

void ResponseRun::store(bool is_in_progress) {
  StoredResponse response{
      .json = builder_.json(), .conversation = {}, .is_in_progress = is_in_progress};
  if (!is_in_progress) response.conversation = builder_.conversation();
  ResponseStore& store = *setup_.api->store;
  if (setup_.reply || is_in_progress) {
    store.put(setup_.head.id, std::move(response));
  } else {
    store.update(setup_.head.id, std::move(response));
  }
}

bool ResponseRun::cancel() {
  if (has_ended_) return false;
  has_ended_ = true;
  if (auto generation = generation_.lock()) generation->cancel();
  builder_.set_status(ResponseStatus::kCancelled);
  store(false);
  forget();
  return true;
}

void ResponseRun::forget() {
  std::lock_guard lock(setup_.api->background_mutex);
  setup_.api->background.erase(setup_.head.id);
}

void ResponseRun::client_gone() {
  has_ended_ = true;
  if (auto generation = generation_.lock()) generation->cancel();
}

}  // namespace briar

// The choices of one client request, from the engine's ids to deltas, on the client's strand.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "briar/engine.h"
#include "briar/output_queue.h"
#include "server/api/answer_reader.h"
#include "server/api/observer.h"

namespace briar {

// What one choice needs: a request without callbacks, and how to read what comes.
struct ChoicePlan {
  Request request;
  // Makes equal readers; called once for the client and, if there are stop strings, once for the
  // engine.
  std::function<std::unique_ptr<AnswerReader>()> make_reader;
  bool has_stop_strings = false;
};

// A sampled token and whether it is part of the answer's text.
struct ReadToken {
  OutputToken token;
  bool is_answer = false;
};

// What is known of a choice so far.
struct ChoiceStatus {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_tokens = 0;
  int64_t num_reasoning_tokens = 0;
  std::vector<float> prompt_logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<std::string> stop_string;  // that ended it
  std::optional<int32_t> stop_token;       // that ended it
  // The model stopped within the opening of a message, so that an answer was announced and is not
  // there.
  bool is_cut_short = false;
};

// Everything runs on the strand that `post` posts to, except what the engine calls. The engine
// keeps a generation alive until its choices have ended.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  using Post = std::function<void(std::function<void()>)>;
  struct Events {
    // New deltas and tokens of a choice; with the last ones its status has a finish reason.
    std::function<void(size_t choice, std::span<const Delta>, std::span<const ReadToken>)>
        on_progress;
    // All choices have ended, or the first error ended them all. Called once; not after cancel().
    std::function<void(const Error* error)> on_end;
  };

  // Hands all choices to the engine, or none: the error is the engine's. To be called on the
  // strand.
  static Result<std::shared_ptr<Generation>> start(Engine& engine, std::vector<ChoicePlan> plans,
                                                   int64_t max_queued_tokens, Post post,
                                                   Events events, ApiObserver* observer);

  // The client is gone: ends all choices within a step and calls nothing any more. On the strand.
  void cancel();

  size_t num_choices() const { return choices_.size(); }
  const ChoiceStatus& status(size_t choice) const { return choices_[choice].status; }

 private:
  struct Choice {
    std::shared_ptr<OutputQueue> queue;
    std::unique_ptr<AnswerReader> reader;
    std::vector<int32_t> stop_token_ids;
    uint64_t request_id = 0;
    ChoiceStatus status;
    std::optional<std::chrono::steady_clock::time_point> latest;  // output
  };

  Generation(Engine& engine, Post post, Events events, ApiObserver* observer);
  Status submit(size_t choice, ChoicePlan plan, int64_t max_queued_tokens);
  void drain(size_t choice);
  void take(size_t choice, Output output);
  void end_choice(Choice& choice, const Output& output, std::vector<Delta>& deltas);
  void observe(Choice& choice, const Output& output);
  void fail(const Error& error);
  void cancel_engine();

  Engine& engine_;
  const Post post_;
  Events events_;
  ApiObserver* const observer_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Choice> choices_;
  size_t num_open_ = 0;
  bool is_silent_ = false;  // on_end was called, or cancel()
};

}  // namespace briar

#include "briar/output_queue.h"

#include <utility>

#include "base/check.h"

namespace briar {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// What `more` adds to `output` of the same request.
void merge(Output& output, Output&& more) {
  append(output.tokens, std::move(more.tokens));
  append(output.prompt_logprobs, std::move(more.prompt_logprobs));
  append(output.hidden_states, std::move(more.hidden_states));
  output.num_cached_tokens = more.num_cached_tokens;
  output.finish_reason = more.finish_reason;
  output.error = std::move(more.error);
  output.kv = std::move(more.kv);
}

}  // namespace

OutputQueue::OutputQueue(int64_t max_tokens, std::function<void()> on_ready)
    : max_tokens_(max_tokens), on_ready_(std::move(on_ready)) {
  CHECK_GE(max_tokens, int64_t{1}, "tokens that an output queue holds");
}

bool OutputQueue::push(Output output) {
  const bool is_last = output.finish_reason != FinishReason::kNone;
  {
    std::lock_guard lock(mutex_);
    CHECK(!has_ended_, "request {}: an output after the last one", output.request_id);
    has_ended_ = is_last;
    if (is_closed_) return false;
    const size_t num_waiting = waiting_ ? waiting_->tokens.size() : 0;
    if (!is_last && num_waiting + output.tokens.size() > static_cast<size_t>(max_tokens_)) {
      return false;
    }
    if (waiting_) {
      merge(*waiting_, std::move(output));
      return true;  // the reader has been told already
    }
    waiting_ = std::move(output);
  }
  filled_.notify_one();
  if (on_ready_) on_ready_();
  return true;
}

std::optional<Output> OutputQueue::take() { return std::exchange(waiting_, std::nullopt); }

std::optional<Output> OutputQueue::pop() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return waiting_ || has_ended_ || is_closed_; });
  return take();
}

std::optional<Output> OutputQueue::try_pop() {
  std::lock_guard lock(mutex_);
  return take();
}

void OutputQueue::close() {
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting_.reset();
  }
  filled_.notify_one();
}

}  // namespace briar

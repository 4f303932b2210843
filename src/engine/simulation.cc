#include "engine/simulation.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>

#include "base/check.h"
#include "engine/step_builder.h"

namespace briar {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// The n-th token under a hash id: any function that gives other tokens for other ids.
int32_t token_of(int64_t hash_id, int64_t n) {
  uint64_t x = static_cast<uint64_t>(hash_id) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(n) + 1;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9u;
  return static_cast<int32_t>((x >> 33) & 0x7fffffff);
}

class Simulation {
 public:
  Simulation(const SimulationConfig& config, const std::vector<TraceRequest>& trace)
      : config_(config), trace_(trace), scheduler_(config.scheduler), waits_(trace.size(), -1) {}

  SimulationResult run() {
    result_.num_requests = static_cast<int64_t>(trace_.size());
    while (next_ < trace_.size() || !sequences_.empty() || !in_flight_.empty()) {
      admit_arrivals();
      if (sequences_.empty() && in_flight_.empty()) {
        now_ms_ = trace_[next_].arrival_ms;
        continue;
      }
      turn();
    }
    result_.makespan_ms = now_ms_;
    if (num_filled_ > 0) result_.step_fill = fill_sum_ / static_cast<double>(num_filled_);
    result_.max_wait_ratio = worst_wait_ratio();
    return std::move(result_);
  }

 private:
  struct Open {
    std::unique_ptr<Sequence> sequence;
    double arrival_ms = 0;
    double last_token_ms = 0;
    bool has_run = false;
  };
  struct StepInFlight {
    SchedulerOutput plan;
    double begin_ms, end_ms;
  };

  void admit_arrivals() {
    if (config_.one_after_another) {
      if (sequences_.empty()) add(next_++, now_ms_);
      return;
    }
    while (next_ < trace_.size() && trace_[next_].arrival_ms <= now_ms_) {
      add(next_, trace_[next_].arrival_ms);
      ++next_;
    }
  }

  void add(size_t index, double arrival_ms) {
    const TraceRequest& r = trace_[index];
    Request request;
    for (int64_t i = 0; i < r.prompt_len; ++i) {
      const auto block = static_cast<size_t>(i / config_.hash_block);
      // Negative ids are this request's own.
      const int64_t id =
          block < r.hash_ids.size() ? r.hash_ids[block] : -1 - static_cast<int64_t>(index);
      request.prompt.push_back(token_of(id, i));
    }
    request.max_tokens = std::max<int64_t>(1, r.output_len);
    CHECK(scheduler_.fits_alone(r.prompt_len + request.max_tokens),
          "request {} of {} + {} tokens can never run", index, r.prompt_len, request.max_tokens);
    Open open{
        .sequence = std::make_unique<Sequence>(index, std::move(request), scheduler_.make_pages()),
        .arrival_ms = arrival_ms};
    scheduler_.add(open.sequence.get());
    sequences_.emplace(index, std::move(open));
  }

  // As the engine does: the next step is planned while this one runs.
  void turn() {
    const size_t depth = config_.overlaps ? 2 : 1;
    const bool may_plan = !waits_for_quiet_ || in_flight_.empty();
    if (may_plan && plan() && in_flight_.size() < depth) return;
    CHECK(!in_flight_.empty(), "step {}: {} sequences and nothing to run", result_.num_steps,
          sequences_.size());
    StepInFlight step = std::move(in_flight_.front());
    in_flight_.pop_front();
    now_ms_ = step.end_ms;
    for (const ScheduledSequence& s : step.plan.sequences) book(s, step.begin_ms);
    if (config_.checks_invariants) check_invariants();
  }

  bool plan() {
    const auto begin = std::chrono::steady_clock::now();
    SchedulerOutput plan = scheduler_.schedule(in_flight_.empty());
    waits_for_quiet_ = plan.wants_quiet;
    result_.num_preemptions += plan.num_preempted;
    if (plan.sequences.empty()) return false;
    packet_ = build_step_packet(packet_builder_, static_cast<uint64_t>(++result_.num_steps), plan,
                                std::move(packet_));
    const std::chrono::duration<double, std::micro> planning =
        std::chrono::steady_clock::now() - begin;
    result_.plan_us.push_back(planning.count());
    result_.plan_seqs.push_back(scheduler_.num_running());
    int64_t num_tokens = 0;
    for (const ScheduledSequence& s : plan.sequences) num_tokens += s.num_tokens;
    if (scheduler_.num_waiting() > 0) {
      fill_sum_ += static_cast<double>(num_tokens) / config_.scheduler.max_batch_tokens;
      ++num_filled_;
    }
    const double begin_ms = in_flight_.empty() ? now_ms_ : in_flight_.back().end_ms;
    const double end_ms =
        begin_ms + config_.step_ms + config_.token_ms * static_cast<double>(num_tokens);
    in_flight_.push_back({std::move(plan), begin_ms, end_ms});
    return true;
  }

  void book(const ScheduledSequence& scheduled, double begin_ms) {
    Sequence& s = *scheduled.sequence;
    const auto it = sequences_.find(s.id);
    if (it == sequences_.end()) {  // it had ended when this step began
      ended_.erase(s.id);
      return;
    }
    Open& open = it->second;
    if (!open.has_run) {
      open.has_run = true;
      waits_[s.id] = begin_ms - open.arrival_ms;
      result_.num_prefix_hit_tokens += s.num_cached_tokens;
      result_.num_prompt_tokens += s.num_prompt();
    }
    std::vector<int32_t> drawn;
    // How many drafts were right: any function of the place.
    const auto num_drawn =
        scheduled.samples ? 1 + static_cast<int64_t>(s.tokens.size()) % (1 + scheduled.num_drafts)
                          : 0;
    while (static_cast<int64_t>(drawn.size()) < num_drawn) {
      drawn.push_back(token_of(-1 - static_cast<int64_t>(s.id),
                               static_cast<int64_t>(s.tokens.size() + drawn.size())));
    }
    scheduler_.confirm(scheduled, drawn);
    if (drawn.empty()) return;
    const bool is_first = s.num_generated() == num_drawn;
    (is_first ? result_.ttft_ms : result_.itl_ms)
        .push_back(now_ms_ - (is_first ? open.arrival_ms : open.last_token_ms));
    open.last_token_ms = now_ms_;
    if (s.num_generated() >= s.request.max_tokens) end(it);
  }

  void end(std::map<uint64_t, Open>::iterator it) {
    ++result_.num_finished;
    Sequence& s = *it->second.sequence;
    const bool is_in_flight = s.num_in_flight > 0;
    scheduler_.remove(&s);
    // A step that was planned before still names it.
    if (is_in_flight) ended_.emplace(s.id, std::move(it->second.sequence));
    sequences_.erase(it);
  }

  void check_invariants() {
    // Who holds what is checked after every step; the lists inside a pool, whose check takes the
    // time of all its pages, after every step of a small pool and now and then of a large one.
    const int64_t num_pages =
        scheduler_.pool(KvKind::kFull).num_pages() + scheduler_.pool(KvKind::kWindow).num_pages();
    try {
      if (result_.num_steps % (num_pages / 50 + 1) == 0) {
        scheduler_.check_invariants();
      } else {
        scheduler_.check_ownership();
      }
    } catch (const CheckError& e) {
      if (result_.num_invariant_failures++ == 0) result_.first_failure = e.what();
    }
  }

  double worst_wait_ratio() const {
    if (config_.one_after_another) return 1;
    std::map<int64_t, std::vector<double>> by_second;
    for (size_t i = 0; i < trace_.size(); ++i) {
      by_second[static_cast<int64_t>(trace_[i].arrival_ms / 1000)].push_back(waits_[i]);
    }
    // "One step": a full one, which is what a request that arrives in the middle of it waits for.
    const double full_step_ms =
        config_.step_ms + config_.token_ms * config_.scheduler.max_batch_tokens;
    double worst = 0;
    for (const auto& [second, waits] : by_second) {
      worst = std::max(worst, *std::max_element(waits.begin(), waits.end()) /
                                  std::max(median(waits), full_step_ms));
    }
    return worst;
  }

  const SimulationConfig& config_;
  const std::vector<TraceRequest>& trace_;
  Scheduler scheduler_;
  SimulationResult result_;
  std::map<uint64_t, Open> sequences_;  // by index in the trace
  std::map<uint64_t, std::unique_ptr<Sequence>> ended_;
  std::deque<StepInFlight> in_flight_;
  bool waits_for_quiet_ = false;
  StepPacketBuilder packet_builder_;
  std::vector<uint8_t> packet_;
  std::vector<double> waits_;
  size_t next_ = 0;
  double now_ms_ = 0;
  double fill_sum_ = 0;
  int64_t num_filled_ = 0;
};

}  // namespace

SimulationResult simulate(const SimulationConfig& config, const std::vector<TraceRequest>& trace) {
  return Simulation(config, trace).run();
}

}  // namespace briar

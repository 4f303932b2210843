#include "engine/scheduler.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace briar {

Scheduler::Scheduler(const SchedulerConfig& config) : config_(config) {
  for (const int32_t pages : config.num_pages) pools_.emplace_back(pages);
  for (int32_t row = config.max_seqs - 1; row >= 0; --row) free_rows_.push_back(row);
}

std::array<SequencePages, kNumKvKinds> Scheduler::make_pages() const {
  return {SequencePages(config_.page_size, config_.window[0]),
          SequencePages(config_.page_size, config_.window[1])};
}

bool Scheduler::fits_alone(int64_t num_tokens) const {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    const int64_t pages = SequencePages::max_pages(config_.page_size, config_.window[kind],
                                                   num_tokens, config_.chunk);
    if (pages > pools_[kind].num_pages()) return false;
  }
  return true;
}

SchedulerOutput Scheduler::schedule() {
  SchedulerOutput out;
  int32_t budget = config_.max_batch_tokens;
  schedule_running(out, budget);
  admit_waiting(out, budget);
  return out;
}

int32_t Scheduler::tokens_to_run(const Sequence& sequence, int32_t budget) const {
  CHECK_GE(sequence.num_pending(), 1, "sequence {} is running with nothing to compute",
           sequence.id);
  return static_cast<int32_t>(std::min<int64_t>({sequence.num_pending(), config_.chunk, budget}));
}

void Scheduler::schedule_running(SchedulerOutput& out, int32_t& budget) {
  // Preemption shortens running_ from its young end, so the index stays valid.
  for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    const int32_t num_tokens = tokens_to_run(sequence, budget);
    bool is_running = true;
    while (is_running && !reserve(sequence, sequence.num_computed + num_tokens)) {
      is_running = running_.back() != &sequence;
      preempt_youngest(out);
    }
    if (!is_running) break;
    out.sequences.push_back({&sequence, num_tokens});
    budget -= num_tokens;
  }
}

void Scheduler::admit_waiting(SchedulerOutput& out, int32_t& budget) {
  // After a preemption the pages are short: whoever gave them up is next in line and waits a step.
  if (out.num_preempted > 0) return;
  while (!waiting_.empty() && !free_rows_.empty() && budget > 0) {
    Sequence& sequence = *waiting_.front();
    const int32_t num_tokens = tokens_to_run(sequence, budget);
    if (!reserve(sequence, num_tokens)) return;
    waiting_.pop_front();
    sequence.row = free_rows_.back();
    free_rows_.pop_back();
    sequence.is_new_to_device = true;
    running_.push_back(&sequence);
    out.sequences.push_back({&sequence, num_tokens});
    budget -= num_tokens;
  }
}

// All kinds or none.
bool Scheduler::reserve(Sequence& sequence, int64_t num_tokens) {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (pools_[kind].num_pages() == 0) continue;  // the model has no layers of this kind
    if (sequence.pages[kind].pages_missing(num_tokens) > pools_[kind].num_free()) return false;
  }
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (pools_[kind].num_pages() == 0) continue;
    const bool reserved = sequence.pages[kind].reserve(pools_[kind], num_tokens);
    CHECK(reserved, "sequence {}: pages were counted a moment ago", sequence.id);
  }
  return true;
}

void Scheduler::release(Sequence& sequence) {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) sequence.pages[kind].release_all(pools_[kind]);
  if (sequence.row >= 0) free_rows_.push_back(sequence.row);
  sequence.row = -1;
  sequence.num_computed = 0;
}

void Scheduler::preempt_youngest(SchedulerOutput& out) {
  CHECK(!running_.empty(), "nothing to preempt");
  Sequence* youngest = running_.back();
  running_.pop_back();
  release(*youngest);
  waiting_.push_front(youngest);
  ++out.num_preempted;
}

void Scheduler::confirm(const ScheduledSequence& scheduled) {
  Sequence& sequence = *scheduled.sequence;
  sequence.num_computed += scheduled.num_tokens;
  sequence.is_new_to_device = false;
  CHECK_LE(sequence.num_computed, static_cast<int64_t>(sequence.tokens.size()), "sequence {}",
           sequence.id);
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    sequence.pages[kind].drop_out_of_window(pools_[kind], sequence.num_computed);
  }
}

void Scheduler::remove(Sequence* sequence) {
  release(*sequence);
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
}

void Scheduler::check_invariants() const {
  std::set<const Sequence*> seen;
  std::set<int32_t> rows(free_rows_.begin(), free_rows_.end());
  CHECK_EQ(rows.size(), free_rows_.size(), "a row is free twice");
  std::array<int64_t, kNumKvKinds> held{};
  for (const Sequence* s : running_) {
    CHECK(seen.insert(s).second, "sequence {} is running twice", s->id);
    CHECK(rows.insert(s->row).second, "row {} of sequence {} has another owner", s->row, s->id);
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      for (const int32_t page : s->pages[kind].page_ids()) {
        CHECK(pools_[kind].is_used(page), "page {} of sequence {} is free", page, s->id);
      }
      held[kind] += static_cast<int64_t>(s->pages[kind].page_ids().size());
    }
  }
  for (const Sequence* s : waiting_) {
    CHECK(seen.insert(s).second, "sequence {} is in two queues", s->id);
    CHECK(s->row == -1 && s->num_computed == 0, "waiting sequence {} has row {}", s->id, s->row);
    for (const SequencePages& pages : s->pages)
      CHECK(pages.page_ids().empty(), "waiting sequence {} holds pages", s->id);
  }
  CHECK_EQ(static_cast<int32_t>(rows.size()), config_.max_seqs, "rows, free and used");
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    pools_[kind].check_invariants();
    CHECK_EQ(held[kind] + pools_[kind].num_free(), static_cast<int64_t>(pools_[kind].num_pages()),
             "pages of kind {}, held plus free", kind);
  }
}

}  // namespace briar

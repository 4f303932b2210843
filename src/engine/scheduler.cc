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
    if (!has_kind(kind)) continue;
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

// Decodes first: a few long prompts must not hold up everybody's next token.
void Scheduler::schedule_running(SchedulerOutput& out, int32_t& budget) {
  for (const bool decodes : {true, false}) {
    // Preemption shortens running_ from its young end, so the index stays valid.
    for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
      if ((running_[i]->num_pending() == 1) == decodes) schedule_one(*running_[i], out, budget);
    }
  }
}

void Scheduler::schedule_one(Sequence& sequence, SchedulerOutput& out, int32_t& budget) {
  const int32_t num_tokens = tokens_to_run(sequence, budget);
  while (!reserve(sequence, sequence.num_computed + num_tokens)) {
    const bool is_itself = running_.back() == &sequence;
    preempt_youngest(out, budget);
    if (is_itself) return;
  }
  out.sequences.push_back({&sequence, num_tokens});
  budget -= num_tokens;
}

// A sequence is admitted when all that is known of it, and of those admitted before it, will find
// pages: with room for the first chunk alone it would be preempted in the middle of its prompt,
// again and again.
void Scheduler::admit_waiting(SchedulerOutput& out, int32_t& budget) {
  // After a preemption the pages are short: whoever gave them up is next in line and waits a step.
  if (out.num_preempted > 0) return;
  std::array<int64_t, kNumKvKinds> promised{};
  for (const Sequence* s : running_) add_pages_to_come(*s, promised);
  while (!waiting_.empty() && !free_rows_.empty() && budget > 0) {
    Sequence& sequence = *waiting_.front();
    adopt_cached_prefix(sequence);
    std::array<int64_t, kNumKvKinds> with_it = promised;
    add_pages_to_come(sequence, with_it);
    bool has_room = running_.empty();
    if (!has_room) {
      has_room = true;
      for (size_t kind = 0; kind < kNumKvKinds; ++kind)
        has_room &= with_it[kind] <= pools_[kind].num_available();
    }
    const int32_t num_tokens = tokens_to_run(sequence, budget);
    if (!has_room || !reserve(sequence, sequence.num_computed + num_tokens)) {
      release(sequence);
      return;
    }
    if (sequence.num_generated() == 0) sequence.num_cached_tokens = sequence.num_computed;
    start(sequence);
    out.sequences.push_back({&sequence, num_tokens});
    budget -= num_tokens;
    add_pages_to_come(sequence, promised);  // what it needs beyond this step's pages
  }
}

void Scheduler::start(Sequence& sequence) {
  waiting_.pop_front();
  sequence.row = free_rows_.back();
  free_rows_.pop_back();
  sequence.is_new_to_device = true;
  running_.push_back(&sequence);
}

void Scheduler::add_pages_to_come(const Sequence& sequence,
                                  std::array<int64_t, kNumKvKinds>& pages) const {
  const auto num_tokens = static_cast<int64_t>(sequence.tokens.size()) + 1;
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (!has_kind(kind)) continue;
    const SequencePages& held = sequence.pages[kind];
    const int64_t most = SequencePages::max_pages(config_.page_size, config_.window[kind],
                                                  num_tokens, config_.chunk);
    const auto now = static_cast<int64_t>(held.page_ids().size());
    pages[kind] +=
        std::min<int64_t>(held.pages_missing(num_tokens), std::max<int64_t>(0, most - now));
  }
}

// All kinds or none.
bool Scheduler::reserve(Sequence& sequence, int64_t num_tokens) {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind) &&
        sequence.pages[kind].pages_missing(num_tokens) > pools_[kind].num_available())
      return false;
  }
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (!has_kind(kind)) continue;
    const bool reserved = sequence.pages[kind].reserve(pools_[kind], num_tokens);
    CHECK(reserved, "sequence {}: pages were counted a moment ago", sequence.id);
  }
  return true;
}

void Scheduler::extend_page_keys(Sequence& sequence, int64_t num_tokens) const {
  std::vector<PageKey>& keys = sequence.page_keys;
  const auto page_size = static_cast<size_t>(config_.page_size);
  const std::span<const int32_t> tokens(sequence.tokens);
  while (static_cast<int64_t>((keys.size() + 1) * page_size) <= num_tokens) {
    const PageKey& previous =
        keys.empty() ? root_page_key(sequence.request.cache_salt) : keys.back();
    keys.push_back(next_page_key(previous, tokens.subspan(keys.size() * page_size, page_size)));
  }
}

void Scheduler::adopt_cached_prefix(Sequence& sequence) {
  // Log-probabilities of the prompt need its hidden states, which no cache has.
  if (!config_.caches_prefixes || sequence.request.wants_prompt_logprobs) return;
  // At least one token is left to run: the next one is drawn from its logits.
  extend_page_keys(sequence, static_cast<int64_t>(sequence.tokens.size()) - 1);
  std::span<const PageKey> keys(sequence.page_keys);
  keys = keys.first(
      std::min(keys.size(), (sequence.tokens.size() - 1) / static_cast<size_t>(config_.page_size)));
  // A shorter beginning may be all that one kind has, and less still of that the other: until all
  // agree.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      if (!has_kind(kind)) continue;
      const auto cached =
          static_cast<size_t>(sequence.pages[kind].longest_cached(pools_[kind], keys));
      changed |= cached < keys.size();
      keys = keys.first(cached);
    }
  }
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind)) sequence.pages[kind].adopt(pools_[kind], keys);
  }
  sequence.num_computed = static_cast<int64_t>(keys.size()) * config_.page_size;
  sequence.num_published_pages = static_cast<int64_t>(keys.size());
}

void Scheduler::release(Sequence& sequence) {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) sequence.pages[kind].release_all(pools_[kind]);
  if (sequence.row >= 0) free_rows_.push_back(sequence.row);
  sequence.row = -1;
  sequence.num_computed = 0;
  sequence.num_published_pages = 0;
  sequence.is_last_token_on_device = false;
}

void Scheduler::preempt_youngest(SchedulerOutput& out, int32_t& budget) {
  CHECK(!running_.empty(), "nothing to preempt");
  Sequence* youngest = running_.back();
  running_.pop_back();
  std::erase_if(out.sequences, [&](const ScheduledSequence& s) {
    if (s.sequence != youngest) return false;
    budget += s.num_tokens;
    return true;
  });
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
  if (config_.caches_prefixes) publish_confirmed_pages(sequence);
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind))
      sequence.pages[kind].drop_out_of_window(pools_[kind], sequence.num_computed);
  }
}

void Scheduler::publish_confirmed_pages(Sequence& sequence) {
  const int64_t num_full = sequence.num_computed / config_.page_size;
  extend_page_keys(sequence, sequence.num_computed);
  const auto keys =
      std::span<const PageKey>(sequence.page_keys).first(static_cast<size_t>(num_full));
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind))
      sequence.pages[kind].publish(pools_[kind], sequence.num_published_pages, keys);
  }
  sequence.num_published_pages = num_full;
}

void Scheduler::remove(Sequence* sequence) {
  release(*sequence);
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
}

void Scheduler::check_invariants() const {
  check_ownership();
  for (const PagePool& pool : pools_) pool.check_invariants();
}

void Scheduler::check_ownership() const {
  std::set<const Sequence*> seen;
  std::vector<char> is_row_owned(static_cast<size_t>(config_.max_seqs), 0);
  for (const int32_t row : free_rows_) {
    CHECK_EQ(int{is_row_owned[static_cast<size_t>(row)]++}, 0, "row {} is free twice", row);
  }
  for (const Sequence* s : running_) {
    CHECK(seen.insert(s).second, "sequence {} is running twice", s->id);
    CHECK_EQ(int{is_row_owned[static_cast<size_t>(s->row)]++}, 0,
             "row {} of sequence {} has another owner", s->row, s->id);
  }
  for (const Sequence* s : waiting_) {
    CHECK(seen.insert(s).second, "sequence {} is in two queues", s->id);
    CHECK(s->row == -1 && s->num_computed == 0, "waiting sequence {} has row {}", s->id, s->row);
    for (const SequencePages& pages : s->pages) {
      CHECK(pages.page_ids().empty(), "waiting sequence {} holds pages", s->id);
    }
  }
  CHECK_EQ(free_rows_.size() + running_.size(), is_row_owned.size(), "rows, free and used");
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) check_holders(kind);
}

// Each page has as many holders as there are sequences with it in their page tables.
void Scheduler::check_holders(size_t kind) const {
  const PagePool& pool = pools_[kind];
  std::vector<int32_t> held;
  for (const Sequence* s : running_) {
    held.insert(held.end(), s->pages[kind].page_ids().begin(), s->pages[kind].page_ids().end());
  }
  std::sort(held.begin(), held.end());
  int32_t num_distinct = 0;
  for (size_t i = 0, end = 0; i < held.size(); i = end, ++num_distinct) {
    while (end < held.size() && held[end] == held[i]) ++end;
    CHECK_EQ(pool.num_holders(held[i]), static_cast<int32_t>(end - i),
             "holders of page {} of kind {}", held[i], kind);
  }
  CHECK_EQ(num_distinct + pool.num_available(), pool.num_pages(),
           "pages of kind {}, held plus available", kind);
}

}  // namespace briar

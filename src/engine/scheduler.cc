#include "engine/scheduler.h"

#include <algorithm>
#include <set>
#include <utility>

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

namespace {

bool is_served_before(const Sequence* a, const Sequence* b) {
  return a->request.priority != b->request.priority ? a->request.priority < b->request.priority
                                                    : a->id < b->id;
}

template <class Queue>
void insert_in_order(Queue& queue, Sequence* sequence) {
  queue.insert(std::upper_bound(queue.begin(), queue.end(), sequence, is_served_before), sequence);
}

}  // namespace

void Scheduler::add(Sequence* sequence) { insert_in_order(waiting_, sequence); }

SchedulerOutput Scheduler::schedule(bool is_quiet) {
  Plan plan{.out = {},
            .budget = config_.max_batch_tokens,
            .is_quiet = is_quiet,
            .num_drafts = drafts_of_step()};
  plan.out.sequences.reserve(running_.size());
  schedule_decodes(plan);
  schedule_prefills(plan);
  admit_waiting(plan, nullptr);
  commit(plan.out);
  return std::move(plan.out);
}

// Drafts are for steps that only decode: where a prompt runs too, the step is not bound by reading
// weights and verifying would cost what it saves.
int32_t Scheduler::drafts_of_step() const {
  if (config_.num_draft_tokens == 0 || running_.empty()) return 0;
  if (!waiting_.empty() && !free_rows_.empty()) return 0;
  int32_t num_seqs = 0;
  for (const Sequence* s : running_) {
    if (!s->has_work()) continue;
    if (!s->is_decoding()) return 0;
    ++num_seqs;
  }
  const int32_t fitting = config_.max_batch_tokens / std::max(1, num_seqs) - 1;
  return std::clamp(fitting, 0, config_.num_draft_tokens);
}

int32_t Scheduler::tokens_to_run(const Sequence& sequence, const Plan& plan) const {
  CHECK_GE(sequence.num_pending(), 1, "sequence {} has nothing to compute", sequence.id);
  int64_t wanted = sequence.num_pending();
  if (plan.num_drafts > 0) {
    // As many drafts as can still be part of the answer.
    const int64_t left =
        sequence.request.max_tokens - sequence.num_generated() - sequence.num_draws_in_flight - 1;
    wanted += std::min<int64_t>(plan.num_drafts, left);
  }
  return static_cast<int32_t>(std::min<int64_t>({wanted, config_.chunk, plan.budget}));
}

// Decodes first: a few long prompts must not hold up everybody's next token.
void Scheduler::schedule_decodes(Plan& plan) {
  // Preemption shortens running_ from its end, so the index stays valid.
  for (size_t i = 0; i < running_.size() && plan.budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.num_pending() == 1 && sequence.has_work()) schedule_one(sequence, plan);
  }
}

void Scheduler::schedule_prefills(Plan& plan) {
  std::vector<Sequence*> prefills;
  for (Sequence* s : running_) {
    if (s->num_pending() > 1) prefills.push_back(s);
  }
  for (Sequence* s : prefills) {
    admit_waiting(plan, s);
    const bool was_preempted = s->row < 0;
    if (!was_preempted && plan.budget > 0) schedule_one(*s, plan);
  }
}

void Scheduler::schedule_one(Sequence& sequence, Plan& plan) {
  const int32_t num_tokens = tokens_to_run(sequence, plan);
  while (!reserve(sequence, sequence.num_computed + sequence.num_in_flight + num_tokens)) {
    if (!plan.is_quiet) {
      // The steps in flight may end a sequence or push pages out of a window.
      plan.out.wants_quiet = true;
      return;
    }
    const bool is_itself = running_.back() == &sequence;
    preempt_last(plan);
    if (is_itself) return;
  }
  put_in_plan(sequence, num_tokens, plan);
}

void Scheduler::put_in_plan(Sequence& sequence, int32_t num_tokens, Plan& plan) {
  const int64_t num_drafts = std::max<int64_t>(0, num_tokens - sequence.num_pending());
  const bool is_decoding = sequence.is_decoding();
  plan.out.sequences.push_back({.sequence = &sequence,
                                .num_tokens = num_tokens,
                                .num_drafts = static_cast<int32_t>(num_drafts),
                                .num_given = is_decoding ? 0 : num_tokens,
                                .begin = sequence.num_computed + sequence.num_in_flight,
                                .sets_length = sequence.is_new_to_device,
                                .new_page = sequence.pages_on_device,
                                .samples = num_tokens - num_drafts == sequence.num_pending() &&
                                           sequence.request.max_tokens > 0});
  plan.budget -= num_tokens;
}

void Scheduler::commit(const SchedulerOutput& out) {
  for (const ScheduledSequence& scheduled : out.sequences) {
    Sequence& s = *scheduled.sequence;
    s.num_in_flight += scheduled.num_tokens;
    s.is_new_to_device = false;
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      s.pages_on_device[kind] = s.pages[kind].end_page();
    }
    if (!scheduled.samples) continue;
    s.num_unknown += 1 + scheduled.num_drafts;
    s.num_draws_in_flight += 1;
    s.is_last_token_on_device = true;
  }
}

// A sequence is admitted when all that is known of it, and of those admitted before it, will find
// pages: with room for the first chunk alone it would be preempted in the middle of its prompt,
// again and again.
void Scheduler::admit_waiting(Plan& plan, const Sequence* before) {
  // Where pages ran short, whoever gave them up is next in line and waits a step.
  const bool is_short = plan.out.num_preempted > 0 || plan.out.wants_quiet;
  const auto is_wanted = [&] {
    return !waiting_.empty() && plan.budget > 0 &&
           (before == nullptr || waiting_.front()->request.priority < before->request.priority);
  };
  if (is_short || !is_wanted()) return;
  std::array<int64_t, kNumKvKinds> promised = pages_to_come();
  while (is_wanted()) {
    Sequence& sequence = *waiting_.front();
    if (try_admit(sequence, plan, promised)) continue;
    const bool can_take_over =
        !running_.empty() && running_.back()->request.priority > sequence.request.priority;
    if (!can_take_over) return;
    if (!plan.is_quiet) {
      plan.out.wants_quiet = true;
      return;
    }
    preempt_last(plan);
    promised = pages_to_come();
  }
}

bool Scheduler::try_admit(Sequence& sequence, Plan& plan,
                          std::array<int64_t, kNumKvKinds>& promised) {
  if (free_rows_.empty()) return false;
  adopt_cached_prefix(sequence);
  std::array<int64_t, kNumKvKinds> with_it = promised;
  add_pages_to_come(sequence, with_it);
  const auto has_room = [&] {
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      if (with_it[kind] > pools_[kind].num_available()) return false;
    }
    return true;
  };
  while (!has_room() && !kept_.empty()) drop_kept_pages(kept_.begin()->first);
  const int32_t num_tokens = tokens_to_run(sequence, plan);
  if (!(running_.empty() || has_room()) || !reserve(sequence, sequence.num_computed + num_tokens)) {
    release(sequence);
    return false;
  }
  if (sequence.num_generated() == 0) sequence.num_cached_tokens = sequence.num_computed;
  start(sequence);
  put_in_plan(sequence, num_tokens, plan);
  add_pages_to_come(sequence, promised);  // what it needs beyond this step's pages
  return true;
}

void Scheduler::start(Sequence& sequence) {
  waiting_.pop_front();
  sequence.row = free_rows_.back();
  free_rows_.pop_back();
  sequence.is_new_to_device = true;
  insert_in_order(running_, &sequence);
}

std::array<int64_t, kNumKvKinds> Scheduler::pages_to_come() const {
  std::array<int64_t, kNumKvKinds> pages{};
  for (const Sequence* s : running_) add_pages_to_come(*s, pages);
  return pages;
}

void Scheduler::add_pages_to_come(const Sequence& sequence,
                                  std::array<int64_t, kNumKvKinds>& pages) const {
  const int64_t num_tokens =
      static_cast<int64_t>(sequence.tokens.size()) + sequence.num_unknown + 1;
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

bool Scheduler::has_pages(const Sequence& sequence, int64_t num_tokens) const {
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind) &&
        sequence.pages[kind].pages_missing(num_tokens) > pools_[kind].num_available())
      return false;
  }
  return true;
}

// All kinds or none.
bool Scheduler::reserve(Sequence& sequence, int64_t num_tokens) {
  while (!has_pages(sequence, num_tokens)) {
    if (kept_.empty()) return false;
    drop_kept_pages(kept_.begin()->first);
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

size_t Scheduler::longest_cached(const Pages& pages, std::span<const PageKey> keys) const {
  // A shorter beginning may be all that one kind has, and less still of that the other: until all
  // agree.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      if (!has_kind(kind)) continue;
      const auto cached = static_cast<size_t>(pages[kind].longest_cached(pools_[kind], keys));
      changed |= cached < keys.size();
      keys = keys.first(cached);
    }
  }
  return keys.size();
}

void Scheduler::adopt_cached_prefix(Sequence& sequence) {
  // These need all hidden states of the prompt, which no cache has.
  if (sequence.request.wants_prompt_logprobs || sequence.request.wants_hidden_states) return;
  if (!config_.caches_prefixes && !sequence.request.kv) return;
  // At least one token is left to run: the next one is drawn from its logits.
  extend_page_keys(sequence, static_cast<int64_t>(sequence.tokens.size()) - 1);
  std::span<const PageKey> keys(sequence.page_keys);
  keys = keys.first(
      std::min(keys.size(), (sequence.tokens.size() - 1) / static_cast<size_t>(config_.page_size)));
  keys = keys.first(longest_cached(sequence.pages, keys));
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
  sequence.pages_on_device = {};
  sequence.num_computed = 0;
  sequence.num_in_flight = sequence.num_unknown = sequence.num_draws_in_flight = 0;
  sequence.num_published_pages = 0;
  sequence.is_last_token_on_device = false;
}

void Scheduler::preempt_last(Plan& plan) {
  CHECK(!running_.empty() && plan.is_quiet, "nothing to preempt, or steps are in flight");
  Sequence* last = running_.back();
  CHECK(last->num_in_flight == 0 && last->num_unknown == 0, "sequence {} is in flight", last->id);
  running_.pop_back();
  std::erase_if(plan.out.sequences, [&](const ScheduledSequence& s) {
    if (s.sequence != last) return false;
    plan.budget += s.num_tokens;
    return true;
  });
  release(*last);
  insert_in_order(waiting_, last);
  ++plan.out.num_preempted;
}

void Scheduler::confirm(const ScheduledSequence& scheduled, std::span<const int32_t> drawn) {
  Sequence& s = *scheduled.sequence;
  s.num_in_flight -= scheduled.num_tokens;
  s.num_computed += scheduled.num_tokens - scheduled.num_drafts;
  if (scheduled.samples) {
    s.num_unknown -= 1 + scheduled.num_drafts;
    s.num_draws_in_flight -= 1;
    CHECK(!drawn.empty() && drawn.size() <= static_cast<size_t>(1 + scheduled.num_drafts),
          "sequence {}: {} ids drawn with {} drafts", s.id, drawn.size(), scheduled.num_drafts);
    s.num_computed += static_cast<int64_t>(drawn.size()) - 1;  // the drafts that were right
    s.tokens.insert(s.tokens.end(), drawn.begin(), drawn.end());
  }
  CHECK_LE(s.num_computed, static_cast<int64_t>(s.tokens.size()), "sequence {}", s.id);
  if (config_.caches_prefixes || s.request.keeps_kv) publish_confirmed_pages(s);
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind)) s.pages[kind].drop_out_of_window(pools_[kind], s.num_computed);
  }
}

int64_t Scheduler::keep_pages(Sequence& sequence, uint64_t name) {
  CHECK(kept_.empty() || name > kept_.rbegin()->first, "kept pages {}", name);
  auto keys = std::span<const PageKey>(sequence.page_keys)
                  .first(static_cast<size_t>(sequence.num_published_pages));
  Pages pages = make_pages();
  keys = keys.first(longest_cached(pages, keys));
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    if (has_kind(kind)) pages[kind].adopt(pools_[kind], keys);
  }
  kept_.emplace(name, std::move(pages));
  return static_cast<int64_t>(keys.size()) * config_.page_size;
}

void Scheduler::drop_kept_pages(uint64_t name) {
  const auto it = kept_.find(name);
  if (it == kept_.end()) return;
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) it->second[kind].release_all(pools_[kind]);
  kept_.erase(it);
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
    CHECK(s->row == -1 && s->num_computed == 0 && s->num_in_flight == 0,
          "waiting sequence {} has row {}", s->id, s->row);
    for (const SequencePages& pages : s->pages) {
      CHECK(pages.page_ids().empty(), "waiting sequence {} holds pages", s->id);
    }
  }
  CHECK_EQ(free_rows_.size() + running_.size(), is_row_owned.size(), "rows, free and used");
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) check_holders(kind);
}

// Each page has as many holders as there are page tables with it.
void Scheduler::check_holders(size_t kind) const {
  const PagePool& pool = pools_[kind];
  std::vector<int32_t>& holders = holders_[kind];
  holders.resize(static_cast<size_t>(pool.num_pages()), 0);
  std::vector<int32_t> held;
  const auto count = [&](const Pages& pages) {
    for (const int32_t id : pages[kind].page_ids()) {
      if (holders[static_cast<size_t>(id)]++ == 0) held.push_back(id);
    }
  };
  for (const Sequence* s : running_) count(s->pages);
  for (const auto& [name, pages] : kept_) count(pages);
  for (const int32_t id : held) {
    const int32_t num_tables = std::exchange(holders[static_cast<size_t>(id)], 0);
    CHECK_EQ(pool.num_holders(id), num_tables, "holders of page {} of kind {}", id, kind);
  }
  CHECK_EQ(static_cast<int32_t>(held.size()) + pool.num_available(), pool.num_pages(),
           "pages of kind {}, held plus available", kind);
}

}  // namespace briar

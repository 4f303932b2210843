// Decides what runs in the next step: a deterministic function of waiting and running sequences,
// free pages and the budget. No clock, no device, no threads.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/sequence.h"
#include "kvcache/page_pool.h"

namespace briar {

struct SchedulerConfig {
  int32_t max_seqs = 64;
  int32_t max_batch_tokens = 2048;
  int32_t chunk = 512;
  int32_t page_size = 16;
  std::array<int32_t, kNumKvKinds> num_pages{};
  std::array<int32_t, kNumKvKinds> window{};  // 0 for kFull
  bool caches_prefixes = true;
};

struct ScheduledSequence {
  Sequence* sequence;
  int32_t num_tokens;  // of its pending tokens, from num_computed on
};

struct SchedulerOutput {
  std::vector<ScheduledSequence> sequences;
  int32_t num_preempted = 0;
};

// Sequences are first come, first served. When pages run out, the youngest running sequence gives
// up its pages and later computes again what the cache has lost of them by then.
//
// The prefix cache is the page pools' memory of pages that nobody holds: full pages are named once
// their tokens are confirmed, and a sequence that is admitted takes over the longest beginning of
// its own that every kind still has. In window layers that is only what the next query can see.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  std::array<SequencePages, kNumKvKinds> make_pages() const;
  // Whether a sequence of this many tokens can run with nobody beside it.
  bool fits_alone(int64_t num_tokens) const;

  void add(Sequence* sequence) { waiting_.push_back(sequence); }
  // Takes a sequence out, wherever it is, and frees its pages and its row.
  void remove(Sequence* sequence);

  SchedulerOutput schedule();
  // Records that a step has run: its tokens have KV, and pages that left the window go back.
  void confirm(const ScheduledSequence& scheduled);

  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const PagePool& pool(KvKind kind) const { return pools_[static_cast<size_t>(kind)]; }

  // Throws CheckError unless every page and row has exactly its owners and no sequence is in two
  // places. The time of the second is that of the pages held, of the first that of all pages.
  void check_invariants() const;
  void check_ownership() const;

 private:
  void schedule_running(SchedulerOutput& out, int32_t& budget);
  void admit_waiting(SchedulerOutput& out, int32_t& budget);
  bool reserve(Sequence& sequence, int64_t num_tokens);
  void start(Sequence& sequence);
  // Adds what all known tokens of the sequence, and the one after them, will take beyond the pages
  // it holds.
  void add_pages_to_come(const Sequence& sequence, std::array<int64_t, kNumKvKinds>& pages) const;
  bool has_kind(size_t kind) const { return config_.num_pages[kind] > 0; }
  // Extends sequence.page_keys to (at least) the pages that `num_tokens` of its tokens fill.
  void extend_page_keys(Sequence& sequence, int64_t num_tokens) const;
  // Takes over what the pools still have of the sequence's beginning.
  void adopt_cached_prefix(Sequence& sequence);
  void publish_confirmed_pages(Sequence& sequence);
  void release(Sequence& sequence);
  void schedule_one(Sequence& sequence, SchedulerOutput& out, int32_t& budget);
  // Its share of this step's budget, if it had one, is given back.
  void preempt_youngest(SchedulerOutput& out, int32_t& budget);
  void check_holders(size_t kind) const;
  int32_t tokens_to_run(const Sequence& sequence, int32_t budget) const;

  SchedulerConfig config_;
  std::vector<PagePool> pools_;  // by kind
  std::vector<int32_t> free_rows_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // oldest first
};

}  // namespace briar

// Decides what runs in the next step: a deterministic function of waiting and running sequences,
// free pages and the budget. No clock, no device, no threads.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
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
  // Draft tokens that a step verifies for each sequence, if it decodes and nothing else; 0 = none.
  int32_t num_draft_tokens = 0;
};

struct ScheduledSequence {
  Sequence* sequence;
  int32_t num_tokens;      // to run, drafts included
  int32_t num_drafts = 0;  // the last of them, which the device makes up itself
  int32_t num_given = 0;   // the first of them, whose ids the host sends; else the row's last draw
  int64_t begin = 0;       // tokens with KV before the step; with drafts in flight an upper bound
  bool sets_length = false;  // the row is told its length
  // Per kind: the first page, as an index into the page table, that the row has not heard of.
  std::array<int32_t, kNumKvKinds> new_page{};
  bool samples = false;  // draws the token behind the last one
};

struct SchedulerOutput {
  std::vector<ScheduledSequence> sequences;
  int32_t num_preempted = 0;
  // More could be done once the steps in flight have reported: plan nothing before that.
  bool wants_quiet = false;
};

// Sequences are served by priority (lower first), then first come, first served. Steps may be
// planned while earlier ones run: what those will have done is known but for the ids they draw and
// the sequences they end. When pages run out, the running sequence that is last in that order gives
// up its pages and later computes again what the cache has lost of them by then; that is decided
// only when no step is in flight.
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

  void add(Sequence* sequence);
  // Takes a sequence out, wherever it is, and frees its pages and its row at once: steps run in
  // order, so whoever gets them writes after the steps in flight.
  void remove(Sequence* sequence);

  // is_quiet: no step is in flight.
  SchedulerOutput schedule(bool is_quiet);
  // Records what a step has done for a sequence that is still here: its tokens have KV, `drawn`
  // (none or up to 1 + num_drafts ids) follow, and pages that left the window go back.
  void confirm(const ScheduledSequence& scheduled, std::span<const int32_t> drawn);

  // Keeps a sequence's confirmed full pages from eviction, under a name of the caller's that grows
  // from call to call; returns how many tokens they hold. When pages run short, the oldest are let
  // go first, before anybody is preempted.
  int64_t keep_pages(Sequence& sequence, uint64_t name);
  void drop_kept_pages(uint64_t name);  // unknown names are ignored

  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const PagePool& pool(KvKind kind) const { return pools_[static_cast<size_t>(kind)]; }

  // Throws CheckError unless every page and row has exactly its owners and no sequence is in two
  // places. The time of the second is that of the pages held, of the first that of all pages.
  void check_invariants() const;
  void check_ownership() const;

 private:
  using Pages = std::array<SequencePages, kNumKvKinds>;
  // A step in the making.
  struct Plan {
    SchedulerOutput out;
    int32_t budget;
    bool is_quiet;
    int32_t num_drafts;
  };

  void schedule_decodes(Plan& plan);
  void schedule_prefills(Plan& plan);
  // Admits waiting sequences; with `before`, only those of better priority than that one.
  void admit_waiting(Plan& plan, const Sequence* before);
  bool try_admit(Sequence& sequence, Plan& plan, std::array<int64_t, kNumKvKinds>& promised);
  void schedule_one(Sequence& sequence, Plan& plan);
  void put_in_plan(Sequence& sequence, int32_t num_tokens, Plan& plan);
  void commit(const SchedulerOutput& out);
  int32_t drafts_of_step() const;
  int32_t tokens_to_run(const Sequence& sequence, const Plan& plan) const;

  bool reserve(Sequence& sequence, int64_t num_tokens);
  bool has_pages(const Sequence& sequence, int64_t num_tokens) const;
  void start(Sequence& sequence);
  // Adds what all known tokens of the sequence, and the one after them, will take beyond the pages
  // it holds.
  void add_pages_to_come(const Sequence& sequence, std::array<int64_t, kNumKvKinds>& pages) const;
  std::array<int64_t, kNumKvKinds> pages_to_come() const;
  bool has_kind(size_t kind) const { return config_.num_pages[kind] > 0; }
  // Extends sequence.page_keys to (at least) the pages that `num_tokens` of its tokens fill.
  void extend_page_keys(Sequence& sequence, int64_t num_tokens) const;
  // How many of `keys` every kind still has pages for.
  size_t longest_cached(const Pages& pages, std::span<const PageKey> keys) const;
  // Takes over what the pools still have of the sequence's beginning.
  void adopt_cached_prefix(Sequence& sequence);
  void publish_confirmed_pages(Sequence& sequence);
  void release(Sequence& sequence);
  // The last in order; its share of the plan, if it had one, is given back.
  void preempt_last(Plan& plan);
  void check_holders(size_t kind) const;

  SchedulerConfig config_;
  std::vector<PagePool> pools_;  // by kind
  std::vector<int32_t> free_rows_;
  std::deque<Sequence*> waiting_;   // in order of service
  std::vector<Sequence*> running_;  // likewise
  std::map<uint64_t, Pages> kept_;  // by name, the oldest first
  // Of check_holders(): zero between calls, so that a check takes the time of the pages held.
  mutable std::array<std::vector<int32_t>, kNumKvKinds> holders_;
};

}  // namespace briar

// What the engine sends a runner for one step, and what it gets back.
//
// A StepPacket is one flat run of bytes without pointers: today it is handed to a thread, later it
// can go through shared memory or a socket to another process, and to the device in one copy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/kv_kind.h"

namespace briar {

inline constexpr uint32_t kStepPacketVersion = 2;

// One sequence of a step. Lengths live on the device: the runner keeps, per row, how many tokens of
// the sequence have KV (`length`) and the id it sampled last; the host knows upper bounds only.
struct StepSequence {
  int32_t row = 0;         // device row, [0, max_seqs)
  int32_t num_tokens = 0;  // tokens to run in this step, >= 1
  // How many of them stand in the packet: all, or none where the first is the row's last sampled id
  // (and drafts follow).
  int32_t num_given = 0;
  int32_t set_length =
      -1;  // >= 0: the row's length before this step (a sequence begins or was preempted)
  int32_t max_length =
      0;  // bound on the length after this step; the pages below hold that many tokens
  int32_t wants_sample = 0;  // 1: draw the next token from the last token's logits
  // Rows at positions [score_begin, score_end) report the log-probability of the token behind them.
  int32_t score_begin = 0;
  int32_t score_end = 0;
  int32_t num_top_logprobs = 0;     // likeliest tokens to report with each sampled token
  int32_t wants_hidden_states = 0;  // 1: report the final hidden states of all its tokens
  // Sampling parameters; see kernels/sampling/logit_adjustment.h and sampler.h for their meaning.
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  int32_t bans_stop_ids = 0;  // 1: the row's stop ids may not be drawn
  int32_t has_mask = 0;       // 1: a MaskPacket for this step says what may be drawn
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  uint32_t choice = 0;
  uint64_t seed = 0;
  // Sizes of the RowSetup in the packet, all zero where there is none.
  int32_t num_bias = 0;
  int32_t num_allowed = 0;
  int32_t num_stop = 0;
  int32_t num_history = 0;
  // Per kind: the row's page table from first_page on is what the sequence holds (pages before it
  // have left the window); the packet has the ids from new_page on, the row knows those before.
  std::array<int32_t, kNumKvKinds> first_page{};
  std::array<int32_t, kNumKvKinds> new_page{};
  std::array<int32_t, kNumKvKinds> num_pages{};  // ids in the packet
};

// What a row keeps of its sequence from the first step (set_length >= 0) on; empty for most. Ids
// are distinct within each list.
struct RowSetup {
  std::span<const int32_t> bias_ids = {};
  std::span<const float> biases = {};
  std::span<const int32_t> allowed_ids = {};  // empty = all
  std::span<const int32_t> stop_ids = {};
  // Penalties look at these: ids of prompt and answer, and how often the answer has them so far.
  // The row counts on from here with what it draws.
  std::span<const int32_t> history_ids = {};
  std::span<const int32_t> history_counts = {};
};

// Builds packets, one after another. The order of calls is the order of the sequences. A builder
// and the buffers it fills are used again from step to step: at thousands of sequences, fresh
// memory would cost more than what is written to it.
class StepPacketBuilder {
 public:
  void begin(uint64_t step_id);

  // `sequence.num_given`, `num_pages` and the sizes of `setup` are filled in from the arguments.
  // `next_token`: the token after the last given one, where it is known and prompt
  // log-probabilities are wanted; else -1.
  void add(StepSequence sequence, std::span<const int32_t> given_tokens, int32_t next_token,
           const std::array<std::span<const int32_t>, kNumKvKinds>& new_page_ids,
           const RowSetup& setup = {});

  // The packet, in `buffer`'s memory as far as it goes.
  std::vector<uint8_t> finish(std::vector<uint8_t> buffer = {});

 private:
  void add_setup(StepSequence& sequence, const RowSetup& setup);

  uint64_t step_id_ = 0;
  std::vector<StepSequence> sequences_;
  std::vector<int32_t> tokens_;    // given tokens, then one next token, per sequence
  std::vector<int32_t> page_ids_;  // per sequence, per kind
  std::vector<int32_t> setups_;    // per sequence, in RowSetup's order; floats as their bits
};

// Reads a packet in place; the bytes must outlive the view. A packet of another version or with
// sizes that do not add up fails a CHECK.
class StepPacketView {
 public:
  explicit StepPacketView(std::span<const uint8_t> bytes);

  uint64_t step_id() const { return step_id_; }
  std::span<const StepSequence> sequences() const { return sequences_; }
  int64_t num_tokens() const { return num_tokens_; }

  // Walks the sequences' parts in order: call once per sequence, with consecutive indices.
  struct Parts {
    std::span<const int32_t> given_tokens;
    int32_t next_token;
    std::array<std::span<const int32_t>, kNumKvKinds> new_page_ids;
    RowSetup setup;
  };
  std::vector<Parts> parts() const;

 private:
  uint64_t step_id_ = 0;
  int64_t num_tokens_ = 0;
  std::span<const StepSequence> sequences_;
  std::span<const int32_t> tokens_;
  std::span<const int32_t> page_ids_;
  std::span<const int32_t> setups_;
};

// Which tokens the constrained sequences of one step may draw. It follows its StepPacket and may
// come while the step runs: sampling alone waits for it.
struct MaskPacket {
  uint64_t step_id = 0;
  // One for each sequence with has_mask, in the packet's order: a bit per id, id t being bit t % 32
  // of word t / 32.
  std::vector<std::vector<uint32_t>> masks;
};

}  // namespace briar

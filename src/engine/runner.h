// One rank: a model, its KV cache and the per-sequence state on its device. Takes step packets,
// gives step results.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "batch/forward_batch.h"
#include "batch/step_packet.h"
#include "batch/step_result.h"
#include "device/arena.h"
#include "device/device.h"
#include "engine/memory_plan.h"
#include "models/model.h"

namespace briar {

struct RunnerConfig {
  MemoryPlan memory;
  Precision precision;
  DType kv_dtype = DType::kBf16;
  int32_t page_size = 16;
  int32_t max_seqs = 64;
  int32_t max_batch_tokens = 2048;
  int64_t num_token_ids = 0;  // ids from here on are not tokens
};

struct RowRequest;

class Runner {
 public:
  Runner(Device& device, Stream& stream, const Model& model, const RunnerConfig& config);
  ~Runner();

  // Runs one step to its end. The packet's bytes must be aligned to 8. `wait_for_masks` is called
  // after the forward pass if a sequence of the step has a mask; it may wait.
  StepResult run(std::span<const uint8_t> packet,
                 const std::function<MaskPacket(uint64_t step_id)>& wait_for_masks);

 private:
  // What the device knows of a sequence, by row.
  struct Row {
    int32_t length = 0;         // tokens with KV
    int32_t last_sampled = -1;  // input of the next decode step
    // By index of page; entries before the packet's first_page mean nothing any more.
    std::array<std::vector<int32_t>, kNumKvKinds> page_table = {};
    std::unique_ptr<RowRequest> request;  // what it asks of every draw, if anything
  };
  // A row of logits: which sequence it belongs to and what is asked of it.
  struct OutputRow {
    int32_t sequence;  // index in the packet
    int32_t token;     // row of the batch
    int32_t
        scored_token;  // id whose log-probability is wanted, -1 = that of the sampled one, if any
    bool samples;
  };
  struct Prepared {
    ForwardBatch batch;
    std::vector<OutputRow> outputs;
    std::vector<OutputRow> hidden_only;  // rows whose hidden states are wanted, behind the others
  };

  void allocate_cache();
  // Derives tokens, positions, slots and page tables from the packet and the rows' state: on a GPU
  // this is a kernel.
  Prepared prepare(const StepPacketView& packet);
  void fill_sequence(const StepSequence& sequence, const StepPacketView::Parts& parts,
                     int32_t index, int32_t first_token, Prepared& prepared);
  // Logits, sampling and log-probabilities for outputs [begin, end), from their hidden states.
  // masks: by index of sequence in the packet; empty where there is none.
  void finish_rows(const StepPacketView& packet, std::span<const OutputRow> outputs,
                   const std::vector<std::span<const uint32_t>>& masks, const TensorView& hidden,
                   StepResult& result);
  void copy_hidden_states(const Prepared& prepared, const TensorView& hidden, StepResult& result);

  Device& device_;
  Stream& stream_;
  const Model& model_;
  RunnerConfig config_;
  Arena workspace_;
  Arena logits_;
  std::array<Buffer, kNumKvKinds> kv_buffers_;
  std::vector<KvLayerView> kv_layers_;
  std::vector<Row> rows_;
};

}  // namespace briar

#include "engine/runner.h"

#include <algorithm>

#include "engine/row_request.h"
#include "engine/sampling_stage.h"
#include "engine/step_trace.h"

namespace briar {
namespace {

// The masks by index of sequence.
std::vector<std::span<const uint32_t>> spread(const StepPacketView& packet,
                                              const MaskPacket& masks) {
  std::vector<std::span<const uint32_t>> out(packet.sequences().size());
  size_t next = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (packet.sequences()[i].has_mask != 0) out[i] = masks.masks.at(next++);
  }
  CHECK_EQ(next, masks.masks.size(), "masks of step {}", packet.step_id());
  return out;
}

}  // namespace

Runner::~Runner() = default;

Runner::Runner(Device& device, Stream& stream, const Model& model, const RunnerConfig& config)
    : device_(device),
      stream_(stream),
      model_(model),
      config_(config),
      workspace_(device, config.memory.workspace_bytes, "workspace"),
      logits_(device, config.memory.logits_bytes, "logits"),
      rows_(static_cast<size_t>(config.max_seqs)) {
  allocate_cache();
}

void Runner::allocate_cache() {
  const ModelInfo& info = model_.info();
  std::array<int64_t, kNumKvKinds> offset{};
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    kv_buffers_[kind] =
        Buffer(device_, config_.memory.num_pages[kind] * config_.memory.page_bytes[kind]);
  }
  for (const KvKind layer_kind : info.layer_kinds) {
    const auto kind = static_cast<size_t>(layer_kind);
    auto tensor = [&] {
      char* data = static_cast<char*>(kv_buffers_[kind].data()) + offset[kind];
      const TensorView view(
          data, config_.kv_dtype,
          {config_.memory.num_pages[kind], config_.page_size, info.num_kv_heads, info.head_dim});
      offset[kind] += view.num_bytes();
      return view;
    };
    const TensorView k = tensor();
    kv_layers_.push_back({k, tensor()});
  }
}

Runner::Prepared Runner::prepare(const StepPacketView& packet) {
  const auto num_seqs = static_cast<int64_t>(packet.sequences().size());
  const int64_t num_tokens = packet.num_tokens();
  CHECK(num_seqs >= 1 && num_seqs <= config_.max_seqs, "step {}: {} sequences", packet.step_id(),
        num_seqs);
  CHECK_LE(num_tokens, static_cast<int64_t>(config_.max_batch_tokens), "tokens of step {}",
           packet.step_id());
  Prepared p;
  ForwardBatch& b = p.batch;
  b.token_ids = workspace_.tensor(DType::kInt32, {num_tokens});
  b.positions = workspace_.tensor(DType::kInt32, {num_tokens});
  b.cu_seqlens_q = workspace_.tensor(DType::kInt32, {num_seqs + 1});
  b.seq_lens = workspace_.tensor(DType::kInt32, {num_seqs});
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    int64_t max_pages = 1;
    for (const StepSequence& s : packet.sequences()) {
      max_pages = std::max<int64_t>(max_pages, s.new_page[kind] + s.num_pages[kind]);
    }
    b.kv[kind].page_table = workspace_.tensor(DType::kInt32, {num_seqs, max_pages});
    b.kv[kind].slots = workspace_.tensor(DType::kInt32, {num_tokens});
    std::fill_n(b.kv[kind].page_table.ptr<int32_t>(), num_seqs * max_pages, -1);
  }
  const std::vector<StepPacketView::Parts> parts = packet.parts();
  int32_t first_token = 0;
  b.cu_seqlens_q.ptr<int32_t>()[0] = 0;
  for (int32_t i = 0; i < num_seqs; ++i) {
    const auto at = static_cast<size_t>(i);
    fill_sequence(packet.sequences()[at], parts[at], i, first_token, p);
    first_token += packet.sequences()[at].num_tokens;
    b.cu_seqlens_q.ptr<int32_t>()[i + 1] = first_token;
  }
  const size_t num_outputs = p.outputs.size();
  b.output_rows =
      workspace_.tensor(DType::kInt32, {static_cast<int64_t>(num_outputs + p.hidden_only.size())});
  int32_t* rows = b.output_rows.ptr<int32_t>();
  for (size_t i = 0; i < num_outputs; ++i) rows[i] = p.outputs[i].token;
  for (size_t i = 0; i < p.hidden_only.size(); ++i) rows[num_outputs + i] = p.hidden_only[i].token;
  return p;
}

void Runner::fill_sequence(const StepSequence& s, const StepPacketView::Parts& parts, int32_t index,
                           int32_t first_token, Prepared& p) {
  CHECK(s.row >= 0 && s.row < config_.max_seqs, "row {} of {}", s.row, config_.max_seqs);
  Row& row = rows_[static_cast<size_t>(s.row)];
  if (s.set_length >= 0) {
    row = {.length = s.set_length,
           .last_sampled = -1,
           .page_table = {},
           .request = make_row_request(s, parts.setup, config_.num_token_ids)};
  }
  CHECK(s.num_given == s.num_tokens || row.last_sampled >= 0,
        "row {} has sampled nothing that it could go on from", s.row);
  CHECK_LE(row.length + s.num_tokens, s.max_length, "row {}: length after the step", s.row);
  ForwardBatch& b = p.batch;
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    std::vector<int32_t>& known = row.page_table[kind];
    const auto new_page = static_cast<size_t>(s.new_page[kind]);
    CHECK(new_page <= known.size() || s.set_length >= 0, "row {}: pages from {} on, {} known",
          s.row, new_page, known.size());
    known.resize(new_page, -1);
    known.insert(known.end(), parts.new_page_ids[kind].begin(), parts.new_page_ids[kind].end());
    int32_t* table = b.kv[kind].page_table.ptr<int32_t>() + index * b.kv[kind].page_table.stride(0);
    std::copy(known.begin() + s.first_page[kind], known.end(), table + s.first_page[kind]);
  }
  for (int32_t i = 0; i < s.num_tokens; ++i) {
    const int32_t token = first_token + i, position = row.length + i;
    b.token_ids.ptr<int32_t>()[token] =
        i < s.num_given ? parts.given_tokens[static_cast<size_t>(i)] : row.last_sampled;
    b.positions.ptr<int32_t>()[token] = position;
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      const int32_t* table =
          b.kv[kind].page_table.ptr<int32_t>() + index * b.kv[kind].page_table.stride(0);
      // A kind that the model has no layers of has no pages either.
      b.kv[kind].slots.ptr<int32_t>()[token] =
          config_.memory.num_pages[kind] == 0
              ? -1
              : table[position / config_.page_size] * config_.page_size +
                    position % config_.page_size;
    }
    const bool is_last = i + 1 == s.num_tokens;
    int32_t scored = -1;
    if (position >= s.score_begin && position < s.score_end) {
      scored = is_last ? parts.next_token : parts.given_tokens[static_cast<size_t>(i) + 1];
    }
    const bool samples = is_last && s.wants_sample != 0;
    if (scored >= 0 || samples) p.outputs.push_back({index, token, scored, samples});
    if (s.wants_hidden_states != 0) p.hidden_only.push_back({index, token, -1, false});
  }
  row.length += s.num_tokens;
  b.seq_lens.ptr<int32_t>()[index] = row.length;
}

StepResult Runner::run(std::span<const uint8_t> bytes,
                       const std::function<MaskPacket(uint64_t step_id)>& wait_for_masks) {
  const StepPacketView packet(bytes);
  StepResult result{.step_id = packet.step_id(), .sequences = {}, .begin_us = steady_now_us()};
  const Arena::Scope scope(workspace_);
  const Prepared prepared = prepare(packet);
  const KvCacheView kv_cache{kv_layers_};
  ForwardContext ctx{.stream = stream_,
                     .workspace = workspace_,
                     .batch = prepared.batch,
                     .kv_cache = kv_cache,
                     .precision = config_.precision,
                     .rope_cos_sin = {}};
  const TensorView hidden = model_.forward(ctx);
  for (const StepSequence& s : packet.sequences()) {
    result.sequences.push_back({.row = s.row,
                                .length = rows_[static_cast<size_t>(s.row)].length,
                                .has_nan = false,
                                .sampled = {},
                                .prompt_logprobs = {},
                                .hidden_states = {}});
  }
  copy_hidden_states(prepared, hidden, result);
  result.sampling_us = steady_now_us();
  const bool has_masks = std::any_of(packet.sequences().begin(), packet.sequences().end(),
                                     [](const StepSequence& s) { return s.has_mask != 0; });
  const MaskPacket masks = has_masks ? wait_for_masks(packet.step_id()) : MaskPacket{};
  const std::vector<std::span<const uint32_t>> mask_of = spread(packet, masks);
  const std::span<const OutputRow> outputs = prepared.outputs;
  const auto block = static_cast<size_t>(config_.memory.num_logit_rows);
  for (size_t begin = 0; begin < outputs.size(); begin += block) {
    const size_t end = std::min(outputs.size(), begin + block);
    finish_rows(packet, outputs.subspan(begin, end - begin), mask_of,
                hidden.rows(static_cast<int64_t>(begin), static_cast<int64_t>(end)), result);
  }
  result.end_us = steady_now_us();
  return result;
}

void Runner::copy_hidden_states(const Prepared& prepared, const TensorView& hidden,
                                StepResult& result) {
  for (size_t i = 0; i < prepared.hidden_only.size(); ++i) {
    const auto row = static_cast<int64_t>(prepared.outputs.size() + i);
    std::vector<float>& to =
        result.sequences[static_cast<size_t>(prepared.hidden_only[i].sequence)].hidden_states;
    for (int64_t column = 0; column < hidden.size(1); ++column) {
      const int64_t at = row * hidden.stride(0) + column;
      to.push_back(hidden.dtype() == DType::kBf16 ? to_float(hidden.ptr<Bf16>()[at])
                                                  : hidden.ptr<float>()[at]);
    }
  }
}

void Runner::finish_rows(const StepPacketView& packet, std::span<const OutputRow> outputs,
                         const std::vector<std::span<const uint32_t>>& masks,
                         const TensorView& hidden, StepResult& result) {
  const Arena::Scope scope(logits_);
  const TensorView logits =
      logits_.tensor(DType::kFp32, {hidden.size(0), model_.info().vocab_size});
  model_.logits(stream_, hidden, logits);
  std::vector<StageRow> stage_rows;
  std::vector<LogitAdjustment> adjustments(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputRow& o = outputs[i];
    const StepSequence& s = packet.sequences()[static_cast<size_t>(o.sequence)];
    const bool is_adjusted =
        o.samples && make_adjustment(s, rows_[static_cast<size_t>(s.row)].request.get(),
                                     masks[static_cast<size_t>(o.sequence)], adjustments[i]);
    // The token drawn after this row stands one position further on.
    const auto position = static_cast<uint32_t>(rows_[static_cast<size_t>(s.row)].length);
    stage_rows.push_back(
        {.sampling = {.temperature = s.temperature,
                      .top_k = s.top_k,
                      .top_p = s.top_p,
                      .min_p = s.min_p,
                      .random = {.seed = s.seed, .choice = s.choice, .position = position}},
         .samples = o.samples,
         .scored_token = o.scored_token,
         .num_top_logprobs = o.samples ? s.num_top_logprobs : -1,
         .adjustment = is_adjusted ? &adjustments[i] : nullptr});
  }
  const std::vector<StageResult> results =
      run_sampling_stage(stream_, logits_, logits, config_.num_token_ids, stage_rows);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputRow& o = outputs[i];
    SequenceResult& to = result.sequences[static_cast<size_t>(o.sequence)];
    if (o.scored_token >= 0) to.prompt_logprobs.push_back(results[i].scored_logprob);
    if (results[i].has_nan) to.has_nan = true;
    if (o.samples && results[i].has_no_choice) to.has_no_choice = true;
    if (!o.samples || results[i].has_nan || results[i].has_no_choice) continue;
    to.sampled.push_back(results[i].sampled);
    Row& row = rows_[static_cast<size_t>(to.row)];
    row.last_sampled = results[i].sampled.token_id;
    if (row.request) row.request->count(row.last_sampled);
  }
}

}  // namespace briar

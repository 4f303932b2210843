#include "engine/step_builder.h"

#include <algorithm>
#include <map>

#include "batch/step_packet.h"

namespace briar {
namespace {

bool has_penalties(const SamplingParams& p) {
  return p.repetition_penalty != 1 || p.frequency_penalty != 0 || p.presence_penalty != 0;
}

// Tokens of the answer before the step's draw. Nobody drafts for a request that counts them.
int64_t num_generated_before(const ScheduledSequence& scheduled) {
  const int64_t length = scheduled.begin + scheduled.num_tokens - scheduled.num_drafts;
  return length - scheduled.sequence->num_prompt();
}

StepSequence describe(const ScheduledSequence& scheduled) {
  const Sequence& s = *scheduled.sequence;
  const SamplingParams& p = s.request.sampling;
  StepSequence out;
  out.row = s.row;
  out.num_tokens = scheduled.num_tokens;
  out.set_length = scheduled.sets_length ? static_cast<int32_t>(scheduled.begin) : -1;
  out.max_length = static_cast<int32_t>(scheduled.begin + scheduled.num_tokens);
  out.wants_sample = scheduled.samples ? 1 : 0;
  if (s.request.wants_prompt_logprobs) {
    // The row at position p scores the token at p + 1; what has been scored is not scored again.
    out.score_begin = static_cast<int32_t>(s.num_prompt_scored);
    out.score_end = static_cast<int32_t>(s.num_prompt() - 1);
  }
  out.num_top_logprobs = s.request.num_top_logprobs;
  out.wants_hidden_states = s.request.wants_hidden_states ? 1 : 0;
  out.repetition_penalty = p.repetition_penalty;
  out.frequency_penalty = p.frequency_penalty;
  out.presence_penalty = p.presence_penalty;
  out.has_mask = scheduled.samples && s.request.constraint ? 1 : 0;
  // A constraint knows by itself when the answer may end.
  out.bans_stop_ids =
      !s.request.constraint && num_generated_before(scheduled) < p.min_tokens ? 1 : 0;
  out.temperature = p.temperature;
  out.top_k = p.top_k;
  out.top_p = p.top_p;
  out.min_p = p.min_p;
  out.choice = p.choice;
  out.seed = p.seed;
  return out;
}

// What the lists of a RowSetup point to.
struct SetupLists {
  std::vector<int32_t> bias_ids, stop_ids, history_ids, history_counts;
  std::vector<float> biases;
};

RowSetup make_setup(const Sequence& s, SetupLists& lists) {
  const SamplingParams& p = s.request.sampling;
  for (const LogitBias& bias : p.logit_bias) {
    lists.bias_ids.push_back(bias.token_id);
    lists.biases.push_back(bias.bias);
  }
  if (p.min_tokens > 0) lists.stop_ids = s.request.stop_token_ids;
  if (has_penalties(p)) {
    std::map<int32_t, int32_t> counts;
    for (size_t i = 0; i < s.tokens.size(); ++i) {
      counts[s.tokens[i]] += static_cast<int64_t>(i) >= s.num_prompt() ? 1 : 0;
    }
    for (const auto& [id, count] : counts) {
      lists.history_ids.push_back(id);
      lists.history_counts.push_back(count);
    }
  }
  return {.bias_ids = lists.bias_ids,
          .biases = lists.biases,
          .allowed_ids = p.allowed_token_ids,
          .stop_ids = lists.stop_ids,
          .history_ids = lists.history_ids,
          .history_counts = lists.history_counts};
}

}  // namespace

std::vector<uint8_t> build_step_packet(StepPacketBuilder& builder, uint64_t step_id,
                                       const SchedulerOutput& output, std::vector<uint8_t> buffer) {
  builder.begin(step_id);
  for (const ScheduledSequence& scheduled : output.sequences) {
    const Sequence& s = *scheduled.sequence;
    // A decode step's token is the one the device drew itself: the host need not have heard of it
    // yet.
    const auto begin = static_cast<size_t>(scheduled.begin);
    const auto count = static_cast<size_t>(scheduled.num_given);
    const std::span<const int32_t> tokens(s.tokens);
    const auto given = count == 0 ? std::span<const int32_t>() : tokens.subspan(begin, count);
    const bool is_next_in_prompt = static_cast<int64_t>(begin + count) < s.num_prompt();
    StepSequence sequence = describe(scheduled);
    std::array<std::span<const int32_t>, kNumKvKinds> new_page_ids;
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      const int32_t first = s.pages[kind].first_page();
      sequence.first_page[kind] = first;
      sequence.new_page[kind] = std::max(first, scheduled.new_page[kind]);
      new_page_ids[kind] =
          s.pages[kind].page_ids().subspan(static_cast<size_t>(sequence.new_page[kind] - first));
    }
    SetupLists lists;
    builder.add(sequence, given, is_next_in_prompt ? s.tokens[begin + count] : -1, new_page_ids,
                scheduled.sets_length ? make_setup(s, lists) : RowSetup{});
  }
  return builder.finish(std::move(buffer));
}

}  // namespace briar

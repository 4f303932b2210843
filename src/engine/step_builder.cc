#include "engine/step_builder.h"

#include <algorithm>

#include "batch/step_packet.h"

namespace briar {
namespace {

StepSequence describe(const ScheduledSequence& scheduled) {
  const Sequence& s = *scheduled.sequence;
  const SamplingParams& p = s.request.sampling;
  StepSequence out;
  out.row = s.row;
  out.num_tokens = scheduled.num_tokens;
  out.set_length = s.is_new_to_device ? static_cast<int32_t>(s.num_computed) : -1;
  out.max_length = static_cast<int32_t>(s.num_computed + scheduled.num_tokens);
  out.wants_sample = samples_in_step(scheduled) ? 1 : 0;
  if (s.request.wants_prompt_logprobs) {
    // The row at position p scores the token at p + 1; what has been scored is not scored again.
    out.score_begin = static_cast<int32_t>(s.num_prompt_scored);
    out.score_end = static_cast<int32_t>(s.num_prompt() - 1);
  }
  out.num_top_logprobs = s.request.num_top_logprobs;
  out.temperature = p.temperature;
  out.top_k = p.top_k;
  out.top_p = p.top_p;
  out.min_p = p.min_p;
  out.choice = p.choice;
  out.seed = p.seed;
  return out;
}

}  // namespace

bool samples_in_step(const ScheduledSequence& scheduled) {
  return scheduled.num_tokens == scheduled.sequence->num_pending() &&
         scheduled.sequence->request.max_tokens > 0;
}

std::vector<uint8_t> build_step_packet(uint64_t step_id, const SchedulerOutput& output) {
  StepPacketBuilder builder(step_id);
  for (const ScheduledSequence& scheduled : output.sequences) {
    const Sequence& s = *scheduled.sequence;
    // A decode step's token is the one the device drew itself: the host need not have heard of it
    // yet.
    const bool is_decode =
        scheduled.num_tokens == 1 && s.num_pending() == 1 && s.is_last_token_on_device;
    const auto begin = static_cast<size_t>(s.num_computed);
    const size_t count = is_decode ? 0 : static_cast<size_t>(scheduled.num_tokens);
    const auto given = std::span<const int32_t>(s.tokens).subspan(begin, count);
    const bool is_next_in_prompt = static_cast<int64_t>(begin + count) < s.num_prompt();
    std::array<std::span<const int32_t>, kNumKvKinds> page_ids;
    std::array<int32_t, kNumKvKinds> first_page{};
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      page_ids[kind] = s.pages[kind].page_ids();
      first_page[kind] = s.pages[kind].first_page();
    }
    builder.add(describe(scheduled), given, is_next_in_prompt ? s.tokens[begin + count] : -1,
                page_ids, first_page);
  }
  return builder.finish();
}

}  // namespace briar

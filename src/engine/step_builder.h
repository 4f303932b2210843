// From the scheduler's decision to the bytes that a runner gets.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduler.h"

namespace briar {

std::vector<uint8_t> build_step_packet(uint64_t step_id, const SchedulerOutput& output);

// Whether the step draws a token for this sequence: when all that is known is computed, and one is
// wanted.
bool samples_in_step(const ScheduledSequence& scheduled);

}  // namespace briar

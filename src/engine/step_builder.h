// From the scheduler's decision to the bytes that a runner gets.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/step_packet.h"
#include "engine/scheduler.h"

namespace briar {

// Call it right after schedule(): it reads the sequences as they are then.
std::vector<uint8_t> build_step_packet(StepPacketBuilder& builder, uint64_t step_id,
                                       const SchedulerOutput& output, std::vector<uint8_t> buffer);

}  // namespace briar

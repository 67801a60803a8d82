// Judges what the ranks exchanged about a step before any weight changes.
#pragma once
#include <cstdint>

#include "runtime/data/loader.h"
#include "runtime/step_report.h"

namespace drivetrain {

// Throws, on every rank, kLogic when the data ranks do not hold the targets of the window, kNumeric naming step, rank
// and micro-batch when a loss is not finite. `step` counts from 1. Collective over the world when it throws kNumeric.
void check_sums(const StepSums& sums, const StepBatch& window, StepReport& report, std::int64_t step);

}  // namespace drivetrain

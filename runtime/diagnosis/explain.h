// The causal half of a verdict: why a rank that is late is late, from what its rows say about processor time, operators
// and work.
#pragma once
#include <span>

#include "runtime/diagnosis/device_facts.h"
#include "runtime/diagnosis/findings.h"
#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/window.h"

namespace drivetrain {

// Where a late rank's process was, per affected step and over its peers, in milliseconds. Negative: unknown.
struct ProcessTimes {
  double run_delay = -1;  // ready to run, others had the core
  double stopped = -1;    // neither running nor ready, outside data, checkpoints, host gaps and communication
};
ProcessTimes process_times(const Window& window, int rank, std::span<const std::size_t> steps);

// Time for the same work over the peers', 1 = equal; 0: unknown.
struct Slowdowns {
  double matrix = 0;        // matrix products and attention
  double memory_bound = 0;  // norms, pointwise, embedding and loss, optimizer
};
Slowdowns slowdowns(const Window& window, int rank, std::span<const std::size_t> steps);

// Cause, phase, evidence; everything of a verdict but its cost, action and blame.
Verdict explain(const Window& window, const Lateness& late, const Finding& finding,
                std::span<const DeviceFacts> devices);

// Whether the whole process was held up (stopped, or its core taken), so that lateness in several classes has one cause.
bool whole_process_held(const Window& window, const Finding& finding);

}  // namespace drivetrain

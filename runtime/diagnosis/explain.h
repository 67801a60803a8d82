// The causal half of a verdict: why a rank that is late is late, from what its rows say about processor time, operators
// and work.
#pragma once
#include <span>

#include "runtime/diagnosis/device_facts.h"
#include "runtime/diagnosis/findings.h"
#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/window.h"

namespace drivetrain {

// Time for the same work over the peers', 1 = equal; 0: unknown.
struct Slowdowns {
  double matrix = 0;        // matrix products and attention
  double memory_bound = 0;  // norms, pointwise, embedding and loss, optimizer
};
Slowdowns slowdowns(const Window& window, int rank, std::span<const std::size_t> steps);

// Cause, phase, evidence; everything of a verdict but its cost, action and blame.
Verdict explain(const Window& window, const Lateness& late, const Finding& finding,
                std::span<const DeviceFacts> devices);

}  // namespace drivetrain

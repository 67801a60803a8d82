// The statistical half of a verdict: which rank is late with which kind of work, more than chance explains. Knows
// nothing of costs and causes.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/diagnosis/lateness.h"
#include "runtime/diagnosis/verdict.h"

namespace drivetrain {

struct Finding {
  int rank = -1;
  Signal signal = Signal::kTotal;
  Pattern pattern = Pattern::kSteady;
  std::int64_t period = 0;            // kPeriodic
  std::vector<std::size_t> affected;  // steps of the window in which it was late
  std::size_t onset = 0;              // first of them, chance pauses before a lasting fault left out
  double excess_ms = 0;               // median over the affected steps
  double p = 1;
  double persistence = 0;  // kSteady: share of steps; kPeriodic: share of its turns; kOccasional: 1
  double mean_excess_ms(std::size_t steps) const {
    return excess_ms * static_cast<double>(affected.size()) / static_cast<double>(steps);
  }
};

// All that passes Benjamini-Hochberg at `false_alarms`. `step_ms`: of a usual step.
std::vector<Finding> significant_lateness(const Lateness& late, double step_ms, double false_alarms);

// Outlying steps of changing ranks beyond what chance deals out; empty `affected`: none.
Finding changing_rank_pauses(const Lateness& late, double step_ms);

// The steady lateness of one rank that a window like this shows in 95 of 100 cases.
double detectable_ms(const Lateness& late, double false_alarms);

}  // namespace drivetrain

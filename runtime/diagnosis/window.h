// What a diagnosis is fed with: the same steps of every world rank, and how the ranks are arranged. Rows are read, never
// kept.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/ledger/step_record.h"

namespace drivetrain {

constexpr double kMsPerNs = 1e-6;

struct Window {
  int dp = 1, tp = 1;                              // world rank = dp rank * tp + tp rank
  std::vector<std::span<const StepRecord>> ranks;  // by world rank, ascending steps
  std::vector<std::string> hosts = {};             // by world rank; empty: one host without a name

  int size() const { return static_cast<int>(ranks.size()); }
  std::size_t steps() const { return ranks.empty() ? 0 : ranks.front().size(); }
  const std::string& host(int rank) const;
};

// Throws kData naming rank and step when the ranks do not fill dp x tp or hold different steps.
void check(const Window& window);

// The part of each rank that all ranks have: a rank that died, joined late or writes later has fewer rows. Views into
// `rows`, which must outlive them.
std::vector<std::span<const StepRecord>> common_steps(const std::vector<std::vector<StepRecord>>& rows);

// World ranks that `rank` meets in an axis, itself included, ascending.
std::vector<int> group_of(const Window& window, CommAxis axis, int rank);

double wait_ms(const StepRecord& row, CommAxis axis);
double wait_ms(const StepRecord& row);      // all axes
double transfer_ms(const StepRecord& row);  // all axes
// Neither waiting nor transferring: what this rank did by itself.
double local_ms(const StepRecord& row);

}  // namespace drivetrain

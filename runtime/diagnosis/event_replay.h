// Runs a recorded job again from its events: every rank computes for as long as it did between its collectives, every
// collective begins when its last member arrives and takes as long as it took. With nothing changed this gives the
// measured step times; with one rank's local work shortened, the times that the job would have had. Finer than replay on
// rows (counterfactual.h): it sees where inside the step the lateness lay and who was slack then.
//
// Collectives that ran behind compute (another event of the rank lies inside them) do not hold the rank up; they must be
// over when the step ends.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ledger/step_record.h"

namespace drivetrain {

struct JobEvents {
  int dp = 1, tp = 1;
  std::vector<std::span<const LedgerEvent>>
      ranks;  // by world rank; whole consecutive steps, each rank on its own clock
};

// The local work of `rank` inside phase number `phase` (innermost; Phase of step_record.h) is multiplied by `keep`.
struct LocalChange {
  int rank = 0;
  std::uint8_t phase = 0;
  double keep = 1;
};

// Milliseconds of each step, from the end of the step before on the slowest rank to its own; the first step only sets the
// scene and is left out. Throws kData naming rank and collective when the ranks' collectives do not fit together.
std::vector<double> replay_steps(const JobEvents& job, std::span<const LocalChange> changes = {});

// Local work of a rank inside a phase, milliseconds per step.
double local_phase_ms(const JobEvents& job, int rank, std::uint8_t phase);

// Milliseconds per step gained if the rank needed as long in this phase as its median peer; never negative.
double replayed_gain_ms(const JobEvents& job, int rank, std::uint8_t phase);

}  // namespace drivetrain

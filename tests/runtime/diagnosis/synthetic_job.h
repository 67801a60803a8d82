// A synchronous training job on paper: rows and events of every rank, with noise as machines have it and faults as
// planted. The step times are the job's own arithmetic, so a replay can be held against them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/diagnosis/window.h"

namespace drivetrain {

struct PlantedFault {
  enum class Kind {
    kData,
    kCopy,
    kHostSleep,
    kCheckpoint,
    kStop,        // the process stands still in the middle of forward
    kContention,  // another process takes its core: run delay in all compute
    kSlowClock,   // all operators slower by `amount` as a share
    kMemoryHog,   // memory-bound operators slower by 3 x `amount`, matrix products by a fifth of it
    kMoreWork     // more tokens and FLOPs by `amount` as a share
  };
  Kind kind = Kind::kData;
  int rank = 0;
  double amount = 0;     // ms per affected step, or a share
  int every = 1;         // affected steps: step % every == 0
  int from = 0;          // first affected step
  bool hopping = false;  // a random rank in each affected step instead of `rank`
};

struct SyntheticJob {
  int dp = 2, tp = 1, steps = 20;
  std::uint64_t seed = 1;
  double noise = 0.015;      // of each piece of local work; heavy tails (Student t, 4 degrees of freedom)
  double rank_bias = 0.005;  // steady difference between healthy ranks
  double spikes = 0.01;      // chance per rank and step of a pause of 10 to 30 % of the step
  double drift = 0.0005;     // common to all ranks, per step
  double compute_ms = 90;    // forward, backward and optimizer
  double data_ms = 1, host_ms = 4, copy_ms = 0.5;
  double transfer_ms = 3;  // per data-parallel bucket
  int layers = 4;          // tensor collectives per pass
  std::vector<PlantedFault> faults = {};
  bool counters = true;  // FLOPs, tokens, cpu and run delay in the rows
};

struct SyntheticRun {
  std::vector<std::vector<StepRecord>> ranks;
  std::vector<std::vector<LedgerEvent>> events;
  double mean_step_ms = 0;

  Window window(const SyntheticJob& job, std::size_t from = 0, std::size_t count = SIZE_MAX) const;
};

SyntheticRun simulate(const SyntheticJob& job);

}  // namespace drivetrain

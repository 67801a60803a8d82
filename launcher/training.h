// A training run on one rank: data, optimizer, step loop, checkpoints and telemetry wired around the objects of
// build_rank(). What `drivetrain train` does once the ranks are there.
#pragma once
#include "launcher/build_rank.h"
#include "launcher/failure.h"
#include "runtime/config/config.h"
#include "runtime/signals.h"

namespace drivetrain {

struct TrainingInput {
  const Config& config;
  std::string resolved_config;  // YAML, for the run folder
  const StopSignals& signals;
};

// Trains to the end. Collective over the world. Throws what went wrong; kStopped after a stop request.
void train(const TrainingInput& input, RankObjects& rank, RankPhase& phase);

}  // namespace drivetrain

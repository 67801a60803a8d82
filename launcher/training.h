// A training run on one rank: data, optimizer, step loop, checkpoints and telemetry wired around the objects of
// build_rank(). What `drivetrain train` does once the ranks are there.
#pragma once
#include "launcher/build_rank.h"
#include "launcher/device_peak.h"
#include "launcher/failure.h"
#include "runtime/config/config.h"
#include "runtime/data/loader.h"
#include "runtime/signals.h"

namespace drivetrain {

struct TrainingInput {
  const Config& config;
  std::string resolved_config;  // YAML, for the run folder
  const StopSignals& signals;
  std::shared_ptr<const Dataset> data = nullptr;  // to train on; null: what the configuration names
  std::optional<Peak> peak = {};                  // none: device_peak()
};

// What the configuration says, else a table's, else a measurement's (CPU: 30 ms).
Peak device_peak(const Config& config, const RankObjects& rank);
std::shared_ptr<const Dataset> open_data(const Config& config, const RankObjects& rank,
                                         const std::vector<std::string>& files);
std::unique_ptr<Loader> open_loader(const Config& config, const RankObjects& rank,
                                    std::shared_ptr<const Dataset> data);

// Trains to the end. Collective over the world. Throws what went wrong; kStopped after a stop request.
void train(const TrainingInput& input, RankObjects& rank, RankPhase& phase);

}  // namespace drivetrain

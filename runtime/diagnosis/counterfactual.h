// What a step would have taken had one thing been as with the peers, from per-step rows. A synchronous step lasts as
// long as the local work of its slowest rank plus what all ranks share (transfers, jitter inside the step), so a repair
// gains only until the next-slowest rank is the slowest.
#pragma once
#include <span>
#include <vector>

#include "runtime/diagnosis/lateness.h"

namespace drivetrain {

struct Repair {
  int rank = -1;  // -1: every rank (kLoad: work dealt evenly; else: the outliers of each step)
  Signal signal = Signal::kTotal;
};

class Counterfactual {
 public:
  explicit Counterfactual(const Lateness& late) : late_(late) {}

  // Milliseconds that each step would have been shorter with all of these repaired together.
  //
  // A repaired value becomes the value at the same quantile of the peers (their faster half): their typical times and
  // their noise, so that a repaired rank is not assumed to be quieter than its peers. Work (kLoad) is dealt evenly.
  std::vector<double> gains(std::span<const Repair> repairs) const;

  // Mean gain of all steps; `steady`: wild steps are clipped, for causes that are there in every step.
  double gain(std::span<const Repair> repairs, bool steady) const;

  // The gain of all repairs together, divided among them by their Shapley values: each part is the mean, over all
  // orders of repairing, of what this repair adds. Parts sum to the total. Throws kLogic above kMostRepairs.
  std::vector<double> parts(std::span<const Repair> repairs, bool steady) const;
  static constexpr std::size_t kMostRepairs = 8;  // 256 subsets

 private:
  using Changes = std::vector<double>;  // of local time, rank major
  Changes changes(const Repair& repair) const;
  std::vector<double> gains_of(const std::vector<Changes>& changes, std::size_t chosen) const;

  const Lateness& late_;
};

// The time after a gain, and model FLOPs utilisation in points (0.4 = 40 points) gained with it.
double mfu_points_gained(double mfu, double step_ms, double gain_ms);

}  // namespace drivetrain

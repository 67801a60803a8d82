// Learning rate as a pure function of the update index (from 0), whatever accumulation, data ranks or resumes are.
#pragma once
#include <cstdint>
#include <string>

namespace drivetrain {

struct LrSchedule {
  enum class Kind { kConstant, kLinear, kCosine, kWarmupStableDecay } kind = Kind::kCosine;
  double base = 0;
  std::int64_t warmup = 0;  // rate of update i < warmup is base * (i + 1) / warmup: base is reached at the last one
  std::int64_t total = 0;   // updates in all
  double min_ratio = 0.1;   // rate of the last update / base
  double decay_fraction = 0.2;  // warm-up-stable-decay: share of `total` that decays (linearly)

  double at(std::int64_t update) const;
};

}  // namespace drivetrain

#include "runtime/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace drivetrain {

// The decay starts from the last update at base (the end of the warm-up or of the stable phase, else update 0) and ends
// at the last update of all, which is exactly base * min_ratio.
double LrSchedule::at(std::int64_t update) const {
  if (update < warmup) return base * (static_cast<double>(update + 1) / static_cast<double>(warmup));
  if (kind == Kind::kConstant) return base;
  std::int64_t last_at_base = std::max<std::int64_t>(0, warmup - 1);
  if (kind == Kind::kWarmupStableDecay) {
    const auto decaying = static_cast<std::int64_t>(std::llround(decay_fraction * static_cast<double>(total)));
    last_at_base = std::max(last_at_base, total - decaying - 1);
  }
  if (update <= last_at_base || last_at_base >= total - 1) return base;
  const double progress =
      std::min(1.0, static_cast<double>(update - last_at_base) / static_cast<double>(total - 1 - last_at_base));
  const double share = kind == Kind::kCosine ? 0.5 * (1 + std::cos(std::numbers::pi * progress)) : 1 - progress;
  return base * (min_ratio + (1 - min_ratio) * share);
}

}  // namespace drivetrain

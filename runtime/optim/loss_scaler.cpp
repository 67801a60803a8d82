#include "runtime/optim/loss_scaler.h"

#include <algorithm>

namespace drivetrain {

LossScaler::LossScaler(double initial, std::int64_t interval)
    : dynamic_(true), scale_(std::max(1.0, initial)), interval_(interval) {}

void LossScaler::update(bool overflow) {
  exhausted_ = overflow && scale_ <= 1;
  if (!dynamic_) return;
  if (overflow) {
    scale_ = std::max(1.0, scale_ / 2);
    good_steps_ = 0;
  } else if (++good_steps_ >= interval_) {
    scale_ = std::min(kMaximum, scale_ * 2);
    good_steps_ = 0;
  }
}

void LossScaler::restore(double scale, std::int64_t good_steps) {
  if (!dynamic_) return;
  scale_ = std::clamp(scale, 1.0, kMaximum);
  good_steps_ = good_steps;
}

}  // namespace drivetrain

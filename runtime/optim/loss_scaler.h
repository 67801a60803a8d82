// Dynamic loss scale for fp16: halves on overflow, doubles after `interval` good steps. Fixed at 1 when not used.
#pragma once
#include <cstdint>

namespace drivetrain {

class LossScaler {
 public:
  LossScaler() = default;  // scale 1, never changes
  LossScaler(double initial, std::int64_t interval);
  double scale() const { return scale_; }
  void update(bool overflow);
  std::int64_t good_steps() const { return good_steps_; }
  // Continues from a checkpoint; no effect on a fixed scale.
  void restore(double scale, std::int64_t good_steps);
  // The last update was an overflow at the smallest scale (1): the gradients themselves are not finite.
  bool exhausted() const { return exhausted_; }

 private:
  static constexpr double kMaximum = 4294967296.0;  // 2^32: beyond it a scaled f16 gradient only overflows

  bool dynamic_ = false;
  bool exhausted_ = false;
  double scale_ = 1;
  std::int64_t interval_ = 0;
  std::int64_t good_steps_ = 0;
};

}  // namespace drivetrain

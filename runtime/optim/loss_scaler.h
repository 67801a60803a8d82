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
  void restore(double scale, std::int64_t good_steps);
  // Overflow at the smallest scale (1): the values themselves are not finite.
  bool exhausted() const;

 private:
  bool dynamic_ = false;
  double scale_ = 1;
  std::int64_t interval_ = 0;
  std::int64_t good_steps_ = 0;
};

}  // namespace drivetrain

// The few numbers that all ranks exchange once per step, in one collective and one read of the device: squared gradient
// norm, losses per micro-batch, targets, and whether somebody asks to stop.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/mesh.h"

namespace drivetrain {

struct StepSums {                           // equal on every rank
  double squares = 0;                       // of the gradient, still scaled
  std::int64_t targets = 0;                 // counted by the data ranks
  bool stop = false;                        // some rank asks to stop
  std::vector<double> losses{};             // sum of token losses, per micro-batch
  double loss_sum = 0;                      // of them all
  std::optional<std::int64_t> bad_micro{};  // the first whose loss is not finite
};

class StepReport {
 public:
  StepReport(Device& device, Mesh& mesh, std::int64_t max_micro_batches);

  void begin();                           // everything to zero
  Tensor squares() const;                 // f64 (1), this rank's share
  Tensor loss(std::int64_t micro) const;  // f64 (1), this rank's sum of token losses
  // Collective over the world; the host waits. `targets` of this data rank.
  StepSums exchange(std::int64_t micro_batches, std::int64_t targets, bool stop);
  // After a loss was not finite: the world rank and micro-batch where it happened first. Collective over the world.
  struct Place {
    std::int64_t micro;
    int world_rank;
  };
  Place first_bad_loss(std::int64_t micro_batches);

 private:
  static constexpr std::int64_t kSquares = 0, kTargets = 1, kStop = 2, kLosses = 3;

  Device& device_;
  Mesh& mesh_;
  std::int64_t max_micro_batches_;
  Buffer sums_buffer_, own_buffer_;
  Tensor sums_, own_losses_;
};

}  // namespace drivetrain

#include "runtime/step_check.h"

#include <string>

namespace drivetrain {

void check_sums(const StepSums& sums, const StepBatch& window, StepReport& report, std::int64_t step) {
  const std::string name = "step " + std::to_string(step);
  if (sums.targets != window.window_target_count)
    throw Error(ErrorKind::kLogic, name + ": the data ranks hold " + std::to_string(sums.targets) +
                                       " targets, the window has " + std::to_string(window.window_target_count));
  if (!sums.bad_micro) return;
  const auto micro_batches = static_cast<std::int64_t>(window.micro.size());
  const StepReport::Place place = report.first_bad_loss(micro_batches);
  throw Error(
      ErrorKind::kNumeric,
      "the loss of " + name + " is not finite, first on rank " + std::to_string(place.world_rank) +
          " in micro-batch " + std::to_string(place.micro + 1) + " of " + std::to_string(micro_batches) +
          "; this step changed no weight and nothing was saved over a good checkpoint: lower the learning rate "
          "or check the data");
}

}  // namespace drivetrain

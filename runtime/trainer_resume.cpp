// How the step loop continues from a checkpoint.
#include <cmath>

#include "kernels/ops.h"
#include "runtime/log.h"
#include "runtime/trainer.h"

namespace drivetrain {

void Trainer::resume(const std::filesystem::path& checkpoint) {
  const DeadlineScope deadline(parts_.mesh.world(), options_.checkpoint_deadline);
  state_ = load_checkpoint(checkpoint, parts_.model.store(), parts_.optimizer.state(), parts_.mesh);
  parts_.optimizer.set_updates(state_.adam_step);
  parts_.scaler.restore(state_.loss_scale, state_.loss_scale_good_steps);
  parts_.loader.seek(state_.cursor);
  saved_step_ = state_.step;
  if (parts_.mesh.world().rank() != 0) return;
  log_info("continuing after step " + std::to_string(state_.step) + " from " + checkpoint.string());
  if (state_.step >= options_.steps)
    log_info("nothing to train: step " + std::to_string(state_.step) + " of " + std::to_string(options_.steps) +
             " is done; raise steps, or start another run with run.name");
  if (state_.total_steps != options_.steps)
    log_warn("the checkpoint was made for " + std::to_string(state_.total_steps) + " steps, now there are " +
             std::to_string(options_.steps) + ": the learning rate follows the new schedule");
  if (state_.seed != options_.seed)
    log_warn("the checkpoint was made with seed " + std::to_string(state_.seed) + ", now it is " +
             std::to_string(options_.seed) + ": the order of the data changes");
}

void Trainer::check_weights() {
  report_.begin();
  parts_.device.ops().sum_squares(report_.squares(), parts_.model.store().master());
  if (!std::isfinite(report_.exchange(0, 0, false).squares))
    throw Error(ErrorKind::kNumeric, "the weights are not finite after step " + std::to_string(state_.step) +
                                         "; nothing was saved, the checkpoints before stay: lower optimizer.lr or "
                                         "weight_decay");
}

void Trainer::evaluate_if_missed() {
  if (state_.step == 0) return;
  MetricsRow row;
  evaluate_if_due(row);
  if (!row.eval_loss) return;
  if (parts_.metrics) parts_.metrics->add_evaluation(*row.eval_loss, *row.eval_perplexity);
  if (parts_.observer) parts_.observer->on_evaluation(state_.step, *row.eval_loss, *row.eval_perplexity);
}

}  // namespace drivetrain

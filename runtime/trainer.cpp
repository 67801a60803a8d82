#include "runtime/trainer.h"

#include <cmath>

#include "runtime/replica_check.h"
#include "runtime/step_check.h"
#include "runtime/step_seed.h"

namespace drivetrain {
Trainer::Trainer(const TrainerParts& parts, TrainerOptions options)
    : parts_(parts),
      options_(std::move(options)),
      batch_(parts.device, options_.micro, options_.seq),
      report_(parts.device, parts.mesh, options_.micro_batches) {
  state_.seed = options_.seed;
  state_.total_steps = options_.steps;
  state_.cursor = parts.loader.cursor();
}

void Trainer::run() {
  state_.total_steps = options_.steps;
  state_.seed = options_.seed;
  if (parts_.metrics) parts_.metrics->keep_until(state_.step);
  check_replicas(parts_.device, parts_.model.store(), parts_.mesh);
  if (parts_.recorder) parts_.recorder->begin_after(state_.step);
  parts_.ledger.restart();
  evaluate_if_missed();
  bool stop = false;
  while (state_.step < options_.steps && !stop) {
    MetricsRow row;
    const std::int64_t tokens_before = state_.tokens;
    stop = train_step(row) && state_.step < options_.steps;
    if (!stop) evaluate_if_due(row);
    publish(row);
    const bool due = options_.checkpoint_every > 0 && state_.step % options_.checkpoint_every == 0;
    if (stop || due || (options_.checkpoint_at_end && state_.step == options_.steps)) save();
    const StepRecord record = parts_.ledger.end_step(state_.step, state_.tokens - tokens_before);
    const LedgerSpan span(&parts_.ledger, Phase::kOther);  // of the step that has begun
    if (parts_.recorder) parts_.recorder->add(record, parts_.ledger);
    if (parts_.observer) parts_.observer->on_record(record);
  }
  if (state_.step < options_.steps)
    throw Error(ErrorKind::kStopped, "stopped on request after step " + std::to_string(state_.step) + " of " +
                                         std::to_string(options_.steps) +
                                         "; a checkpoint is saved, the same command continues from it");
}

bool Trainer::train_step(MetricsRow& row) {
  const std::int64_t begin_ns = steady_ns();
  StepBatch window;
  {
    const LedgerSpan span(&parts_.ledger, Phase::kDataWait);
    window = parts_.loader.next();
  }
  row.data_wait_ms = static_cast<double>(steady_ns() - begin_ns) * 1e-6;
  if (parts_.recorder) {
    const LedgerSpan span(&parts_.ledger, Phase::kOther);
    parts_.recorder->see(window, options_.seq);
  }
  // Every rank knows the count of the whole window, so all of them skip an empty one together.
  if (window.window_target_count == 0) window.micro.clear();
  accumulate(window);

  const LedgerSpan span(&parts_.ledger, Phase::kOptimizer);
  const StepSums sums = report_.exchange(static_cast<std::int64_t>(window.micro.size()), window.target_count,
                                         options_.stop_requested());
  check_sums(sums, window, report_, state_.step + 1);
  row.lr = options_.schedule.at(parts_.optimizer.updates());
  row.loss_scale = parts_.scaler.scale();
  if (window.micro.empty()) {
    row.skipped_reason = "no targets";
    row.loss = row.grad_norm = std::nan("");
  } else {
    const StepResult result = parts_.optimizer.apply(row.lr, 1 / row.loss_scale, sums.squares);
    parts_.scaler.update(result.skipped);
    if (result.skipped) row.skipped_reason = "gradient not finite";
    row.loss = sums.loss_sum / static_cast<double>(sums.targets);
    row.grad_norm = result.grad_norm;
    row.samples = window.samples;
  }
  const std::int64_t tokens = row.samples * options_.seq;
  row.targets = sums.targets;
  row.step = ++state_.step;
  row.tokens = state_.tokens += tokens;
  state_.cursor = window.next;
  row.step_ms = static_cast<double>(steady_ns() - begin_ns) * 1e-6;
  row.tokens_per_s = static_cast<double>(tokens) / (row.step_ms * 1e-3);
  row.mfu = model_flops_utilization(options_.flops_per_token, row.tokens_per_s, parts_.mesh.world().size(),
                                    options_.peak_flops_per_device);
  throughput_.add(tokens, row.step_ms);
  if (parts_.scaler.exhausted())
    throw Error(ErrorKind::kNumeric, "the gradient of step " + std::to_string(row.step) +
                                         " is not finite at loss scale 1; the weights are unchanged and nothing was "
                                         "saved: lower the learning rate or check the data");
  return sums.stop;
}

// Gradients of the whole window, reduced, and this rank's share of their squared norm.
void Trainer::accumulate(const StepBatch& window) {
  report_.begin();
  if (window.micro.empty()) return;
  StepContext ctx{
      .arena = parts_.arena,
      .grads = parts_.grads,
      .grad_scale = static_cast<float>(parts_.scaler.scale() / static_cast<double>(window.window_target_count)),
      .dropout_seed = step_seed(options_.seed, state_.step),
      .ledger = &parts_.ledger};
  parts_.grads.begin_step();
  for (std::size_t m = 0; m < window.micro.size(); ++m) {
    const LedgerSpan span(&parts_.ledger, Phase::kForward);  // the model opens backward inside
    parts_.grads.begin_micro(m + 1 == window.micro.size() ? GradReducer::Micro::kLast : GradReducer::Micro::kEarlier);
    parts_.model.forward_backward(report_.loss(static_cast<std::int64_t>(m)), upload(window.micro[m]), ctx);
  }
  {
    const LedgerSpan span(&parts_.ledger, Phase::kBackward);
    parts_.grads.finish();
  }
  const LedgerSpan span(&parts_.ledger, Phase::kOptimizer);
  parts_.optimizer.add_squares(report_.squares());
}

Batch Trainer::upload(const HostBatch& host) {
  const LedgerSpan span(&parts_.ledger, Phase::kCopy);
  return batch_.upload(host);
}

void Trainer::evaluate_if_due(MetricsRow& row) {
  const bool due =
      state_.step == options_.steps || (options_.eval_every > 0 && state_.step % options_.eval_every == 0);
  if (!parts_.evaluator || !due || state_.last_eval_step == state_.step) return;
  const LedgerSpan span(&parts_.ledger, Phase::kEval);
  const EvalResult result = parts_.evaluator->run(parts_.model, parts_.arena);
  state_.last_eval_step = state_.step;
  if (result.targets == 0) return;
  row.eval_loss = result.loss();
  row.eval_perplexity = result.perplexity();
}

void Trainer::publish(const MetricsRow& row) {
  const LedgerSpan span(&parts_.ledger, Phase::kOther);
  if (parts_.metrics) parts_.metrics->append(row);
  if (parts_.observer) parts_.observer->on_row(row);
  if (!parts_.progress) return;
  const auto step_ms = throughput_.mean_step_ms();
  ProgressPoint point{.step = row.step,
                      .total = options_.steps,
                      .loss = row.loss,
                      .lr = row.lr,
                      .grad_norm = row.grad_norm,
                      .tokens_per_s = row.tokens_per_s,
                      .mfu = row.mfu,
                      .eval_loss = row.eval_loss,
                      .skipped_reason = row.skipped_reason};
  if (step_ms) point.left_s = static_cast<double>(options_.steps - row.step) * *step_ms * 1e-3;
  parts_.progress->show(point);
}

void Trainer::save() {
  if (saved_step_ == state_.step) return;
  const LedgerSpan span(&parts_.ledger, Phase::kCheckpoint);
  check_weights();
  state_.adam_step = parts_.optimizer.updates();
  state_.loss_scale = parts_.scaler.scale();
  state_.loss_scale_good_steps = parts_.scaler.good_steps();
  const DeadlineScope deadline(parts_.mesh.world(), options_.checkpoint_deadline);
  parts_.checkpoints.save(state_, parts_.model.store(), parts_.optimizer.state(), parts_.mesh,
                          options_.checkpoint_keep, options_.notes);
  saved_step_ = state_.step;
}

}  // namespace drivetrain

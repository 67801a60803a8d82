#include "runtime/step_report.h"

#include <array>
#include <cmath>

#include "kernels/ops.h"

namespace drivetrain {

StepReport::StepReport(Device& device, Mesh& mesh, std::int64_t max_micro_batches)
    : device_(device),
      mesh_(mesh),
      max_micro_batches_(max_micro_batches),
      sums_buffer_(device, static_cast<std::size_t>(kLosses + max_micro_batches) * sizeof(double)),
      own_buffer_(device, static_cast<std::size_t>(max_micro_batches) * sizeof(double)),
      sums_(sums_buffer_.tensor(DType::kF64)),
      own_losses_(own_buffer_.tensor(DType::kF64)) {}

void StepReport::begin() {
  device_.ops().zero(sums_);
}
Tensor StepReport::squares() const {
  return sums_.flat(kSquares, 1);
}

Tensor StepReport::loss(std::int64_t micro) const {
  if (micro >= max_micro_batches_)
    throw Error(ErrorKind::kLogic, "a window of more than the " + std::to_string(max_micro_batches_) +
                                       " micro-batches that the step was planned for");
  return sums_.flat(kLosses + micro, 1);
}

StepSums StepReport::exchange(std::int64_t micro_batches, std::int64_t targets, bool stop) {
  const Tensor losses = sums_.flat(kLosses, micro_batches), used = sums_.flat(0, kLosses + micro_batches);
  if (micro_batches > 0) device_.ops().copy(own_losses_.flat(0, micro_batches), losses);
  // Every tensor rank has the same losses and targets; one of them counts.
  const bool counts = mesh_.tp_rank() == 0;
  if (!counts && micro_batches > 0) device_.ops().zero(losses);
  const std::array<double, 2> flags{counts ? static_cast<double>(targets) : 0.0, stop ? 1.0 : 0.0};
  device_.upload(sums_.flat(kTargets, 2), std::as_bytes(std::span(flags)));
  mesh_.world().all_reduce(used, ReduceOp::kSum).wait();

  std::vector<double> host(static_cast<std::size_t>(used.count()));
  device_.download(std::as_writable_bytes(std::span(host)), used);
  StepSums out{.squares = host[kSquares], .targets = std::llround(host[kTargets]), .stop = host[kStop] > 0};
  out.losses.assign(host.begin() + kLosses, host.end());
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
    const double loss = out.losses[static_cast<std::size_t>(micro)];
    out.loss_sum += loss;
    if (!std::isfinite(loss) && !out.bad_micro) out.bad_micro = micro;
  }
  return out;
}

StepReport::Place StepReport::first_bad_loss(std::int64_t micro_batches) {
  std::vector<double> own(static_cast<std::size_t>(micro_batches));
  device_.download(std::as_writable_bytes(std::span(own)), own_losses_.flat(0, micro_batches));
  const int ranks = mesh_.world().size();
  double first = static_cast<double>(micro_batches) * ranks;
  for (std::int64_t micro = micro_batches; micro-- > 0;)
    if (!std::isfinite(own[static_cast<std::size_t>(micro)]))
      first = static_cast<double>(micro * ranks + mesh_.world().rank());
  device_.upload(squares(), std::as_bytes(std::span(&first, 1)));
  mesh_.world().all_reduce(squares(), ReduceOp::kMin).wait();
  device_.download(std::as_writable_bytes(std::span(&first, 1)), squares());
  const auto code = std::llround(first);
  return {code / ranks, static_cast<int>(code % ranks)};
}

}  // namespace drivetrain

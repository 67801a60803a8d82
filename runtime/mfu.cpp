#include "runtime/mfu.h"

namespace drivetrain {

std::optional<double> model_flops_utilization(double flops_per_token, double tokens_per_s, std::int64_t devices,
                                              std::optional<double> peak_flops_per_device) {
  if (!peak_flops_per_device || *peak_flops_per_device <= 0 || devices <= 0) return std::nullopt;
  return flops_per_token * tokens_per_s / (static_cast<double>(devices) * *peak_flops_per_device);
}

void Throughput::add(std::int64_t tokens, double step_ms) {
  if (seen_++ < skip_steps_) return;
  tokens_ += tokens;
  total_ms_ += step_ms;
}

std::optional<double> Throughput::tokens_per_s() const {
  if (total_ms_ <= 0) return std::nullopt;
  return static_cast<double>(tokens_) / (total_ms_ * 1e-3);
}

std::optional<double> Throughput::mean_step_ms() const {
  if (seen_ <= skip_steps_) return std::nullopt;
  return total_ms_ / static_cast<double>(seen_ - skip_steps_);
}

}  // namespace drivetrain

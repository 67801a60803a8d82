// Model FLOPs utilisation and the throughput it is made of. Pure arithmetic: the peak comes from whoever knows it.
#pragma once
#include <cstdint>
#include <optional>

namespace drivetrain {

// Share of the machine's arithmetic: FLOPs per token x tokens per second of all devices together / (devices x peak).
// Nothing without a peak: an unknown device has no MFU.
std::optional<double> model_flops_utilization(double flops_per_token, double tokens_per_s, std::int64_t devices,
                                              std::optional<double> peak_flops_per_device);

// Mean tokens per second over the steps of this process, without the first ones, which warm up.
class Throughput {
 public:
  explicit Throughput(std::int64_t skip_steps = 1) : skip_steps_(skip_steps) {}
  void add(std::int64_t tokens, double step_ms);
  // Nothing before the first step that counts.
  std::optional<double> tokens_per_s() const;
  std::optional<double> mean_step_ms() const;

 private:
  std::int64_t skip_steps_, seen_ = 0, tokens_ = 0;
  double total_ms_ = 0;
};

}  // namespace drivetrain

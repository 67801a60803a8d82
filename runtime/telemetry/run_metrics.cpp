#include "runtime/telemetry/run_metrics.h"

#include <cmath>

namespace drivetrain {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

template <class Sample>
void add_sample(std::vector<Metric>& metrics, const std::string& prefix, std::span<const ReadingField<Sample>> fields,
                std::span<const Sample> samples, const std::vector<Labels>& labels) {
  for (const auto& field : fields) {
    Metric metric{prefix + field.key, field.help, false, {}};
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (const Reading& value = samples[i].*field.value) metric.values.push_back({labels[i], *value});
    if (!metric.values.empty()) metrics.push_back(std::move(metric));
  }
}

}  // namespace

void RunMetrics::set_row(const MetricsRow& row) {
  const std::lock_guard lock(mutex_);
  row_ = row;
  if (row.eval_loss) eval_loss_ = row.eval_loss;
}

void RunMetrics::set_record(const StepRecord& record) {
  const std::lock_guard lock(mutex_);
  record_ = record;
  for (std::size_t axis = 0; axis < kCommAxes; ++axis) {
    const AxisTotals& totals = record.axes[axis];
    if (totals.culprit >= 0) waited_s_[{axis, totals.culprit}] += static_cast<double>(totals.culprit_ns) * 1e-9;
  }
}

std::vector<Metric> RunMetrics::collect() const {
  const std::lock_guard lock(mutex_);
  std::vector<Metric> metrics;
  const auto gauge = [&](const char* name, const char* help, double value) {
    metrics.push_back({name, help, false, {{{}, value}}});
  };
  if (row_) {
    gauge("drivetrain_step", "Optimizer steps done.", static_cast<double>(row_->step));
    gauge("drivetrain_loss", "Training loss of the last step.", row_->loss);
    if (eval_loss_) gauge("drivetrain_eval_loss", "Loss of the last evaluation.", *eval_loss_);
    gauge("drivetrain_learning_rate", "Learning rate of the last step.", row_->lr);
    gauge("drivetrain_grad_norm", "Gradient norm of the last step before clipping.", row_->grad_norm);
    gauge("drivetrain_loss_scale", "Loss scale of the last step.", row_->loss_scale);
    gauge("drivetrain_tokens_per_second", "Training speed of the last step, all ranks together.", row_->tokens_per_s);
    if (row_->mfu) gauge("drivetrain_mfu", "Model FLOPs utilisation of the last step, 0 to 1.", *row_->mfu);
    gauge("drivetrain_step_seconds", "Time of the last step without evaluation and checkpoint.",
          row_->step_ms * 1e-3);
    metrics.push_back({"drivetrain_tokens_total",
                       "Tokens trained since the run began, resumes included.",
                       true,
                       {{{}, static_cast<double>(row_->tokens)}}});
  }
  if (record_) {
    Metric classes{"drivetrain_step_class_seconds", "Where the time of the rank's last step went.", false, {}};
    for (std::size_t c = 0; c < kTimeClasses; ++c)
      classes.values.push_back({{{"class", name(static_cast<TimeClass>(c))}, {"rank", rank_}},
                                static_cast<double>(record_->class_ns[c]) * 1e-9});
    metrics.push_back(std::move(classes));
  }
  Metric waits{"drivetrain_wait_seconds_total",
               "Time the rank waited in collectives for the rank that came last most, by axis and that rank.",
               true,
               {}};
  for (const auto& [who, seconds] : waited_s_)
    waits.values.push_back(
        {{{"axis", name(static_cast<CommAxis>(who.first))}, {"culprit", std::to_string(who.second)}, {"rank", rank_}},
         seconds});
  if (!waits.values.empty()) metrics.push_back(std::move(waits));
  return metrics;
}

std::vector<Metric> sample_metrics(const MonitorSample& sample, int world_rank) {
  std::vector<Metric> metrics;
  add_sample<ProcessSample>(metrics, "drivetrain_process_", process_fields(), {&sample.process, 1},
                            {{{"rank", std::to_string(world_rank)}}});
  if (sample.host) add_sample<HostSample>(metrics, "drivetrain_host_", host_fields(), {&*sample.host, 1}, {{}});
  std::vector<Labels> devices;
  for (const DeviceSample& device : sample.devices) devices.push_back({{"pci", device.pci}, {"name", device.name}});
  add_sample<DeviceSample>(metrics, "drivetrain_device_", device_fields(), sample.devices, devices);
  return metrics;
}

}  // namespace drivetrain

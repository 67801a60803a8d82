// What a run tells Prometheus, as a list of metrics. Names end in their base unit; README of the metrics is their help text.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/metrics.h"
#include "runtime/monitor/monitor_file.h"
#include "runtime/telemetry/metrics_server.h"

namespace drivetrain {

// The newest state of a run. Written by the thread that trains, read by the server's.
class RunMetrics {
 public:
  void set_row(const MetricsRow& row);
  // Job and step; nothing of them before the first step.
  std::vector<Metric> collect() const;

 private:
  mutable std::mutex mutex_;
  std::optional<MetricsRow> row_;
  std::optional<double> eval_loss_;  // the newest
};

// The newest sample of the monitor of a rank.
std::vector<Metric> sample_metrics(const MonitorSample& sample, int world_rank);

}  // namespace drivetrain

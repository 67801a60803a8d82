// What a run tells Prometheus, as a list of metrics. Names end in their base unit.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ledger/step_record.h"
#include "runtime/metrics.h"
#include "runtime/monitor/monitor_file.h"
#include "runtime/telemetry/metrics_server.h"

namespace drivetrain {

// The newest state of a run. Written by the thread that trains, read by the server's.
class RunMetrics {
 public:
  explicit RunMetrics(int world_rank) : rank_(std::to_string(world_rank)) {}

  void set_row(const MetricsRow& row);
  void set_record(const StepRecord& record);
  // Nothing before the first step.
  std::vector<Metric> collect() const;

 private:
  std::string rank_;  // value of the label
  mutable std::mutex mutex_;
  std::optional<MetricsRow> row_;
  std::optional<double> eval_loss_;  // the newest
  std::optional<StepRecord> record_;
  std::map<std::pair<std::size_t, int>, double> waited_s_;  // axis and culprit -> in all
};

// The newest sample of the monitor of a rank.
std::vector<Metric> sample_metrics(const MonitorSample& sample, int world_rank);

}  // namespace drivetrain

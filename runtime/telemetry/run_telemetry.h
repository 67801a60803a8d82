// All that a run tells the world while it runs, beside metrics.jsonl and the ledger: samples of the machine, the Prometheus
// endpoint, TensorBoard files. One per rank; what concerns a host is done by the host's first rank, what concerns the
// job by world rank 0.
#pragma once
#include <filesystem>
#include <optional>

#include "runtime/config/config.h"
#include "runtime/monitor/monitor.h"
#include "runtime/step_observer.h"
#include "runtime/telemetry/run_metrics.h"
#include "runtime/telemetry/tensorboard_file.h"

namespace drivetrain {

class RunTelemetry final : public StepObserver {
 public:
  // Starts what `wanted` asks for. Throws before anything is trained: kPreflight when the port is taken, kIo and kConfig
  // for files.
  RunTelemetry(const std::filesystem::path& run_folder, const Config::Telemetry& wanted, const RankPlace& place);

  void on_row(const MetricsRow& row) override;
  void on_evaluation(std::int64_t step, double loss, double perplexity) override;
  void on_record(const StepRecord& record) override;

 private:
  std::vector<Metric> collect() const;

  RankPlace place_;
  RunMetrics metrics_;
  std::optional<TensorboardFile> tensorboard_;
  bool first_row_ = true;
  std::optional<Monitor> monitor_;
  std::optional<MetricsServer> server_;  // last: it reads the others
};

}  // namespace drivetrain

#include "runtime/telemetry/run_telemetry.h"

#include <cmath>
#include <cstdio>

#include "runtime/log.h"

namespace drivetrain {
namespace {

std::filesystem::path monitor_file(const std::filesystem::path& folder, int world_rank) {
  char name[32];
  std::snprintf(name, sizeof name, "monitor-%05d.jsonl", world_rank);
  return folder / name;
}

}  // namespace

RunTelemetry::RunTelemetry(const std::filesystem::path& run_folder, const Config::Telemetry& wanted,
                           const RankPlace& place)
    : place_(place), metrics_(place.world_rank) {
  const bool host_writer = place.local_rank == 0;
  if (wanted.tensorboard && place.world_rank == 0)
    tensorboard_.emplace(run_folder / "tensorboard", short_host_name());
  if (wanted.monitor)
    monitor_.emplace(machine_sources(place, host_writer, wanted.links_script),
                     MonitorOptions{monitor_file(run_folder, place.world_rank), wanted.monitor_every_s});
  const auto where = listen_address(wanted.prometheus);
  if (where && host_writer) {
    server_.emplace(*where, [this] { return collect(); });
    log_info("metrics for Prometheus: " + server_->url());
  }
}

void RunTelemetry::on_row(const MetricsRow& row) {
  if (place_.world_rank == 0) metrics_.set_row(row);
  if (!tensorboard_) return;
  if (first_row_ && row.step > 1) tensorboard_->restart_after(row.step - 1);
  first_row_ = false;
  Scalars scalars{{"train/loss", row.loss},
                  {"train/learning_rate", row.lr},
                  {"train/grad_norm", row.grad_norm},
                  {"train/loss_scale", row.loss_scale},
                  {"speed/tokens_per_second", row.tokens_per_s},
                  {"speed/step_ms", row.step_ms},
                  {"speed/data_wait_ms", row.data_wait_ms}};
  if (row.mfu) scalars.emplace_back("speed/mfu", *row.mfu);
  if (row.eval_loss) scalars.emplace_back("eval/loss", *row.eval_loss);
  if (row.eval_perplexity) scalars.emplace_back("eval/perplexity", *row.eval_perplexity);
  tensorboard_->add(row.step, scalars);
}

void RunTelemetry::on_evaluation(std::int64_t step, double loss, double perplexity) {
  if (tensorboard_) tensorboard_->add(step, {{"eval/loss", loss}, {"eval/perplexity", perplexity}});
}

void RunTelemetry::on_record(const StepRecord& record) {
  metrics_.set_record(record);
}

std::vector<Metric> RunTelemetry::collect() const {
  std::vector<Metric> metrics = metrics_.collect();
  if (!monitor_) return metrics;
  for (Metric& metric : sample_metrics(monitor_->latest(), place_.world_rank)) metrics.push_back(std::move(metric));
  return metrics;
}

}  // namespace drivetrain

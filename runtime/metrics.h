// metrics.jsonl: one JSON object per step with stable keys. Numbers are printed so that reading them back gives the same
// bits. Metrics are data; what people read is progress.h.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace drivetrain {

struct MetricsRow {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // mean over the targets of the whole window
  double lr = 0;
  double grad_norm = 0;          // before clipping
  std::int64_t tokens = 0;       // trained since the run began, resumes included
  double tokens_per_s = 0;       // of this step, all ranks together
  std::optional<double> mfu{};   // null without a known peak
  double step_ms = 0;            // data to optimizer; evaluation and checkpoints not included
  std::int64_t samples = 0;      // of this step, all data ranks together
  std::int64_t targets = 0;      // tokens with a loss in this step
  double data_wait_ms = 0;       // rank 0 waiting for its batch
  double loss_scale = 1;         // of this step
  std::string skipped_reason{};  // empty: the update was applied
  std::optional<double> eval_loss{}, eval_perplexity{};
};
std::string to_json(const MetricsRow& row);

class MetricsFile {
 public:
  // Opens or creates. Throws kIo naming the file.
  explicit MetricsFile(std::filesystem::path file);
  // Drops rows of later steps, and a last row that was cut short: what a resumed run is about to write again.
  void keep_until(std::int64_t step);
  void append(const MetricsRow& row);  // on disk when it returns, as far as the process is concerned
  // Completes the last row, of a step that was evaluated only after it was written.
  void add_evaluation(double eval_loss, double eval_perplexity);

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace drivetrain

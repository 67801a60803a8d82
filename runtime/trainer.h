// The step loop: data, forward and backward, reduction, optimizer, then whatever is due (evaluation, metrics,
// checkpoint, stop). It owns none of its parts and knows no model family. docs/step.md walks through one step.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/batch_buffer.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/evaluator.h"
#include "runtime/ledger/ledger_recorder.h"
#include "runtime/metrics.h"
#include "runtime/mfu.h"
#include "runtime/optim/adamw.h"
#include "runtime/optim/loss_scaler.h"
#include "runtime/optim/lr_schedule.h"
#include "runtime/progress.h"
#include "runtime/step_observer.h"
#include "runtime/step_report.h"

namespace drivetrain {

struct TrainerParts {  // all outlive the trainer
  Device& device;
  Mesh& mesh;
  Model& model;
  Arena& arena;
  Loader& loader;
  GradReducer& grads;
  AdamW& optimizer;
  LossScaler& scaler;
  StepLedger& ledger;
  CheckpointFolder& checkpoints;
  Evaluator* evaluator = nullptr;      // null: no evaluation
  MetricsFile* metrics = nullptr;      // null on all ranks but world rank 0, and where none is wanted
  Progress* progress = nullptr;        // likewise
  LedgerRecorder* recorder = nullptr;  // of the ledger's steps; null: not kept
  StepObserver* observer = nullptr;    // null: nobody else listens
};

struct TrainerOptions {
  std::int64_t steps = 0;          // optimizer steps in all, resumed ones included
  std::int64_t micro = 1;          // sequences per rank and forward
  std::int64_t seq = 0;            // tokens per sequence
  std::int64_t micro_batches = 1;  // of a full window
  LrSchedule schedule;
  std::uint64_t seed = 0;
  std::int64_t eval_every = 0;        // 0: at the end only
  std::int64_t checkpoint_every = 0;  // 0: at the end and on a stop only
  std::int64_t checkpoint_keep = 3;
  Deadline checkpoint_deadline;  // of collectives while one is saved or loaded: ranks wait there for the file system
  bool checkpoint_at_end = true;
  double flops_per_token = 0;
  std::optional<double> peak_flops_per_device;             // none: no MFU
  std::vector<std::pair<std::string, std::string>> notes;  // into the checkpoint's manifest
  std::function<bool()> stop_requested = [] { return false; };
};

class Trainer {
 public:
  Trainer(const TrainerParts& parts, TrainerOptions options);

  // Continues from a checkpoint. Collective over the world.
  void resume(const std::filesystem::path& checkpoint);
  // Trains to the last step. Collective over the world. Throws kStopped after a stop request (checkpoint saved),
  // kNumeric when a loss or, at the smallest loss scale, a gradient is not finite (nothing saved).
  void run();
  const TrainState& state() const { return state_; }

 private:
  // One step, without what follows it; fills the row. True: some rank asked to stop.
  bool train_step(MetricsRow& row);
  void accumulate(const StepBatch& window);
  Batch upload(const HostBatch& host);
  void evaluate_if_due(MetricsRow& row);
  // A stop request saves before it evaluates; the resumed run makes up for that.
  void evaluate_if_missed();
  void publish(const MetricsRow& row);
  void save();
  // Throws kNumeric on every rank when a master weight is not finite. Collective over the world.
  void check_weights();

  TrainerParts parts_;
  TrainerOptions options_;
  BatchBuffer batch_;
  StepReport report_;
  Throughput throughput_;
  TrainState state_;
  std::int64_t saved_step_ = -1;
};

}  // namespace drivetrain

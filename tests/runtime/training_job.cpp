#include "tests/runtime/training_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <thread>

#include "runtime/ledger/ledger_device.h"
#include "runtime/trainer.h"
#include "tests/runtime/memory_dataset.h"
#include "tests/runtime/thread_mesh.h"

namespace drivetrain::test {
namespace {

// Goes when the test program ends.
struct ScratchFolder {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("drivetrain-trainer-test-" + std::to_string(getpid()));
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

TrainerOptions trainer_options(const TrainingJob& job, int world_rank, std::int64_t& asked) {
  TrainerOptions o;
  o.steps = job.steps;
  o.micro = job.micro;
  o.seq = job.seq;
  o.micro_batches = job.global / (job.micro * job.shape.dp);
  o.schedule = job.schedule;
  o.seed = job.seed;
  o.eval_every = job.eval_every;
  o.checkpoint_every = job.checkpoint_every;
  o.flops_per_token = 1e8;
  o.peak_flops_per_device = 1e12;
  o.stop_requested = [&job, &asked, world_rank] { return job.stop && job.stop(world_rank, asked++); };
  return o;
}

// Lets one rank's batches come late.
class LateLoader final : public Loader {
 public:
  LateLoader(std::unique_ptr<Loader> inner, std::chrono::milliseconds delay)
      : inner_(std::move(inner)), delay_(delay) {}
  StepBatch next() override {
    std::this_thread::sleep_for(delay_);
    return inner_->next();
  }
  Cursor cursor() const override { return inner_->cursor(); }
  void seek(Cursor cursor) override { inner_->seek(cursor); }
  std::int64_t steps_per_epoch() const override { return inner_->steps_per_epoch(); }

 private:
  std::unique_ptr<Loader> inner_;
  std::chrono::milliseconds delay_;
};

void run_rank(const TrainingJob& job, Mesh& mesh, TrainingOutcome& out) {
  const int rank = mesh.world().rank();
  StepLedger ledger;
  LedgerDevice device(make_cpu_device(1), ledger);
  mesh.observe(ledger);
  std::int64_t micro = 0, asked = 0;
  TinyModel::Options model_options{.compute = job.store.compute, .dropout = job.dropout};
  if (job.poison) model_options.poison = [&] { return job.poison(rank, micro++); };
  TinyModel model(device, mesh, model_options, job.store);
  Arena arena = TinyModel::make_arena(device);
  const auto data = std::make_shared<MemoryDataset>(job.samples, job.seq, model.vocab_size(), job.targets);
  auto loader = make_loader(data, {job.global, job.micro, job.shape.dp, mesh.dp_rank(), job.seed, true, 0});
  if (job.data_delay) loader = std::make_unique<LateLoader>(std::move(loader), job.data_delay(rank));
  const MemoryDataset held_out(job.eval_samples, job.seq, model.vocab_size());
  GradReducer grads(model.store(), mesh, device, job.wire);
  AdamW optimizer(device, model.store(), mesh, {.clip = job.clip});
  LossScaler scaler = job.loss_scale > 0 ? LossScaler(job.loss_scale, 100) : LossScaler();
  CheckpointFolder checkpoints(job.folder / "checkpoints");
  Evaluator evaluator(device, mesh, held_out, {.micro = job.micro});
  std::optional<MetricsFile> metrics;
  if (rank == 0) metrics.emplace(job.folder / "metrics.jsonl");
  std::filesystem::create_directories(job.folder / "ledger");
  LedgerRecorder recorder(
      job.folder / "ledger",
      {.world_rank = rank, .world_size = mesh.world().size(), .dp = job.shape.dp, .tp = job.shape.tp});

  Trainer trainer({device, mesh, model, arena, *loader, grads, optimizer, scaler, ledger, checkpoints,
                   job.eval_samples > 0 ? &evaluator : nullptr, metrics ? &*metrics : nullptr, nullptr, &recorder},
                  trainer_options(job, rank, asked));
  if (job.resume)
    if (const auto newest = checkpoints.newest()) trainer.resume(*newest);
  trainer.run();

  std::vector<float> weights;
  for (const Parameter* p : model.store().parameters()) {
    std::vector<float> part(static_cast<std::size_t>(p->value.count()));
    model.store().read_master(*p, part);
    weights.insert(weights.end(), part.begin(), part.end());
  }
  if (rank == 0) {
    out.weights = std::move(weights);
    out.state = trainer.state();
  }
}

}  // namespace

std::vector<double> TrainingOutcome::column(const std::string& key) const {
  std::vector<double> out;
  for (const auto& row : rows) out.push_back(row.at(key).is_null() ? -1 : row.at(key).get<double>());
  return out;
}

std::filesystem::path fresh_folder(const std::string& name) {
  static const ScratchFolder scratch;
  const auto folder = scratch.path / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::vector<nlohmann::json> read_rows(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> rows;
  std::ifstream in(folder / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TrainingOutcome train(const TrainingJob& job) {
  TrainingOutcome out;
  with_ranks(job.shape, [&](Device&, Mesh& mesh) { run_rank(job, mesh, out); });
  out.rows = read_rows(job.folder);
  return out;
}

}  // namespace drivetrain::test

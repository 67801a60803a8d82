// Runs the real step loop on the tiny model, with threads as ranks, and hands back what a user would look at.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/mesh.h"
#include "runtime/optim/lr_schedule.h"
#include "tests/runtime/tiny_model.h"

namespace drivetrain::test {

struct TrainingJob {
  std::filesystem::path folder;  // metrics, ledger and checkpoints; must exist
  MeshShape shape;
  StoreOptions store{DType::kF32, StoreOptions::Shard::kOptimizer, 1024};
  DType wire = DType::kF32;
  float dropout = 0;
  std::int64_t samples = 40, seq = 8, micro = 1, global = 4, steps = 10;
  std::function<std::int64_t(std::int64_t)> targets = [](std::int64_t) { return 8; };  // per sample
  std::uint64_t seed = 7;
  LrSchedule schedule{.kind = LrSchedule::Kind::kCosine, .base = 0.05, .warmup = 3, .total = 10};
  double clip = 1.0;
  double loss_scale = 0;  // 0: fixed at 1; else dynamic from here
  std::int64_t eval_every = 0, eval_samples = 0;
  std::int64_t checkpoint_every = 0;
  bool resume = false;
  std::function<bool(int world_rank, std::int64_t micro)> poison;  // micro counts from 0 over the run of this rank
  std::function<bool(int world_rank, std::int64_t asked)> stop;    // asked once per step, from 0
  std::function<std::chrono::milliseconds(int world_rank)> data_delay;  // of each batch
};

struct TrainingOutcome {
  std::vector<nlohmann::json> rows;  // of metrics.jsonl
  std::vector<float> weights;        // masters of rank 0, all parameters
  TrainState state;
  std::vector<double> column(const std::string& key) const;
};

std::filesystem::path fresh_folder(const std::string& name);
TrainingOutcome train(const TrainingJob& job);
std::vector<nlohmann::json> read_rows(const std::filesystem::path& folder);

}  // namespace drivetrain::test

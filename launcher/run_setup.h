// From the words of a configuration to typed options: what to build for how many ranks. Pure but for reading
// config.json; allocates nothing, starts nothing.
#pragma once
#include <cstdint>

#include "models/transformer.h"
#include "runtime/config/config.h"
#include "runtime/flops.h"
#include "runtime/optim/adamw.h"
#include "runtime/optim/lr_schedule.h"

namespace drivetrain {

struct RunSetup {
  ModelConfig model;
  MeshShape mesh;
  TransformerOptions transformer;
  StoreOptions store;
  DType wire = DType::kF32;  // gradients between data ranks
  AdamWOptions optimizer;
  std::int64_t seq_len = 0;
  std::int64_t global_batch = 0, micro_batch = 0;  // sequences
};

// Throws kConfig naming key, value and limit when the model cannot be laid out on `ranks` ranks.
RunSetup set_up_run(const Config& config, int ranks);

LrSchedule lr_schedule(const Config& config, std::int64_t total_steps);
// parameters: logical, tied once.
FlopsShape flops_shape(const ModelConfig& model, std::int64_t seq_len, std::int64_t parameters);
const char* family_name(Family family);

}  // namespace drivetrain

// AdamW on the owned slices of the FP32 master (ZeRO-1 when the store is sharded), with global-norm clipping.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip = 1.0;  // 0: off
};

struct StepResult {
  double grad_norm = 0;  // global, after unscaling, before clipping; tied and replicated parameters once
  bool skipped = false;  // the norm was not finite: nothing changed. Equal on every rank.
};

class AdamW {
 public:
  AdamW(Device& device, ParamStore& store, Mesh& mesh, const AdamWOptions& options);
  // Gradients are final (GradReducer::finish). unscale multiplies them first (1 / loss scale). Updates masters, writes
  // values and gathers them over dp. Collective over the world. Equals the three steps below.
  StepResult step(double lr, double unscale);

  // The same in parts, for a caller who sends the squares along with numbers of its own:
  // 1. adds this rank's share of the squared gradient norm to sum f64 (1): every gradient element of the world counts
  //    on exactly one rank, padding on none;
  void add_squares(Tensor sum);
  // 2. (the caller sums it over the world and reads it); 3. applies the update. Collective over dp.
  StepResult apply(double lr, double unscale, double sum_squares);

  StateTensors state();
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t n) { updates_ = n; }
  std::size_t moment_bytes() const { return moments_.bytes(); }

 private:
  struct Range {
    std::int64_t flat_begin, shard_begin, count;
    bool decay;
  };
  void collect_ranges();

  Device& device_;
  ParamStore& store_;
  Mesh& mesh_;
  AdamWOptions options_;
  Buffer moments_, sum_;
  Tensor m_, v_;
  std::vector<Range> updated_;  // owned parts of the parameters, neighbours with the same decay merged
  std::vector<Range> counted_;  // those whose squares this rank contributes
  std::int64_t updates_ = 0;
};

}  // namespace drivetrain

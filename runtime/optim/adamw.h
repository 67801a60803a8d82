// AdamW on the owned slices of the FP32 master (ZeRO-1 when the store is sharded), with global-norm clipping.
#pragma once
#include <cstdint>

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
  // values and gathers them over dp. Collective over the world.
  StepResult step(double lr, double unscale);
  StateTensors state();
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t n) { updates_ = n; }
  std::size_t moment_bytes() const;

 private:
  Device& device_;
  ParamStore& store_;
  Mesh& mesh_;
  AdamWOptions options_;
  Buffer moments_;
  Tensor m_, v_;
  std::int64_t updates_ = 0;
};

}  // namespace drivetrain

// RMSNorm or LayerNorm over the last dimension, with the residual addition in front of it fused in.
#pragma once
#include <string>

#include "kernels/arena.h"
#include "kernels/ops.h"
#include "runtime/model.h"
#include "runtime/parameter.h"

namespace drivetrain {

struct NormSpec {
  enum class Kind { kRms, kLayer } kind;
  std::string name;                // "layers.3.norm1"
  std::string hf_weight, hf_bias;  // bias only for kLayer
  std::int64_t dim;
  float eps;
  bool partial_grads;  // rows are dealt over tensor ranks
};

struct NormStats {
  Tensor mean, inv_std;  // f32 (rows); mean only for LayerNorm
};

class Norm {
 public:
  Norm(const NormSpec& spec, Ops& ops);
  Norm(const Norm&) = delete;
  Norm& operator=(const Norm&) = delete;

  void register_backward(ParamStore& store);
  NormStats take_stats(Arena& arena, std::int64_t rows) const;

  // y = norm(x); with delta, sum = x + delta is written and normalised instead.
  void forward(Tensor y, NormStats& stats, Tensor sum, Tensor x, Tensor delta) const;
  void forward(Tensor y, NormStats& stats, Tensor x) const { forward(y, stats, Tensor(), x, Tensor()); }
  // dx += gradient; x is what was normalised.
  void backward(Tensor dx, Tensor dy, Tensor x, const NormStats& stats, StepContext& ctx);

 private:
  Ops& ops_;
  NormSpec::Kind kind_;
  float eps_;
  Parameter weight_, bias_;
};

}  // namespace drivetrain

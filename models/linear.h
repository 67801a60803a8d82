// A linear layer y = x w^T + b, whole or cut over the tensor ranks by output rows (column-parallel) or by input columns
// (row-parallel). It moves no data between ranks: its caller gathers and reduces (TensorParallel).
#pragma once
#include <string>
#include <vector>

#include "kernels/arena.h"
#include "kernels/ops.h"
#include "runtime/model.h"
#include "runtime/parameter.h"

namespace drivetrain {

struct LinearSpec {
  std::string name;           // "layers.3.attn.qkv"
  std::vector<Block> weight;  // output rows, by file tensor
  std::vector<Block> bias;    // empty: none
  std::int64_t in = 0;
  std::int64_t in_unit = 1;  // input columns are dealt in multiples of it (row-parallel)
  Split split = Split::kNone;
  float init_std = 0.02f;
};

class Linear {
 public:
  // tp_rank: a row-parallel layer adds its bias to the partial product of tensor rank 0 only, so that the sum over
  // the ranks holds it once.
  Linear(LinearSpec spec, Ops& ops, int tp_rank);
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  // In the order in which backward completes them.
  void register_backward(ParamStore& store);
  std::int64_t local_out() const { return weight_.value.dim(0); }
  std::int64_t local_in() const { return weight_.value.dim(1); }

  void forward(Tensor y, Tensor x) const;
  void input_grad(Tensor dx, Tensor dy) const;
  void weight_grad(Tensor dy, Tensor x, StepContext& ctx);

 private:
  Ops& ops_;
  Parameter weight_, bias_;
  bool has_bias_;
  bool adds_bias_;
};

}  // namespace drivetrain

// One transformer block, pre-norm: x + attention(norm1(x)), then + mlp(norm2(.)). It decides what forward keeps for
// backward and replays the rest. m = rows of the residual stream on this rank, M = rows of the batch.
//
//   kept            none   selective   full
//   x_in (m, C)      yes    yes         yes    (the input; owned by the caller)
//   n1, n2 (M, C)    yes    replayed    replayed
//   qkv, y, lse      yes    yes         replayed
//   x_mid (m, C)     yes    yes         replayed
//   hidden           yes    yes         replayed
//   act (M, F)       yes    replayed    replayed
//
// Replay stops before the last projection: its output is nobody's input in backward.
#pragma once
#include "models/attention.h"
#include "models/mlp.h"
#include "models/norm.h"

namespace drivetrain {

struct BlockActs {
  Tensor x_in;  // (m, C)
  NormStats stats1, stats2;
  Tensor n1, n2;  // (M, C)
  AttentionActs attention;
  Tensor x_mid;  // (m, C)
  MlpActs mlp;
};

class TransformerBlock {
 public:
  TransformerBlock(std::int64_t layer, const LayerEnv& env);

  void register_backward(ParamStore& store);

  // x_out (m, C) = block(x_in). The returned activations live in the arena until the caller's scope ends.
  BlockActs forward(Tensor x_out, Tensor x_in, const Pass& pass, const RopeTable& rope, Arena& arena) const;
  // Nothing is kept. With a cache (2, B, capacity, Hkv D) of this layer: generation from `position` on.
  void infer(Tensor x_out, Tensor x_in, const Pass& pass, const RopeTable& rope, Arena& arena, Tensor cache,
             std::int64_t position) const;
  // dx (m, C): gradient of x_out on entry, of x_in on return.
  void backward(Tensor dx, const BlockActs& acts, const Pass& pass, const RopeTable& rope, StepContext& ctx);

 private:
  void take_kept(BlockActs& acts, const Pass& pass, Arena& arena) const;
  void take_missing(BlockActs& acts, const Pass& pass, Arena& arena) const;
  void forward_to_last(BlockActs& acts, const Pass& pass, const RopeTable& rope, Arena& arena, Tensor cache,
                       std::int64_t position) const;
  void finish(Tensor x_out, const BlockActs& acts, const Pass& pass, Arena& arena) const;
  void replay(BlockActs& acts, const Pass& pass, const RopeTable& rope, Arena& arena) const;
  Tensor dropped(Tensor y, const Pass& pass, std::uint32_t site) const;

  const LayerEnv& env_;
  std::int64_t layer_;
  Norm norm1_, norm2_;
  Attention attention_;
  Mlp mlp_;
};

}  // namespace drivetrain

// Self-attention of one block: fused q|k|v projection (column-parallel, heads dealt over the tensor ranks), rotary
// positions, attention inside documents, output projection (row-parallel). B sequences of T tokens, M = B T rows.
#pragma once
#include <cstdint>

#include "models/layer_env.h"
#include "models/linear.h"
#include "models/rope.h"

namespace drivetrain {

struct AttentionActs {
  Tensor qkv;  // (M, (H + 2 Hkv) / tp * D), rotated
  Tensor y;    // (M, H / tp * D)
  Tensor lse;  // f32 (B, H / tp, T)
};

class Attention {
 public:
  Attention(std::int64_t layer, const LayerEnv& env);

  void register_backward(ParamStore& store);
  AttentionActs take_acts(Arena& arena, const Pass& pass) const;

  // Everything before the output projection. x (M, C) is the gathered norm output.
  void attend(AttentionActs& acts, Tensor x, const Pass& pass, const RopeTable& rope) const;
  // The output projection: partial (M, C) of this tensor rank.
  void project(Tensor partial, const AttentionActs& acts) const { output_.forward(partial, acts.y); }
  // dy (M, C) -> partial gradient of x (M, C), reduced by the returned work; weight gradients on the way.
  TensorParallel::Reduction backward(Tensor dx, Tensor dy, Tensor x, const AttentionActs& acts, const Pass& pass,
                                     const RopeTable& rope, StepContext& ctx);

  // Generation: one new token per sequence at `position`, or a whole prompt from 0, through the cache of this layer.
  void attend_cached(AttentionActs& acts, Tensor x, const Pass& pass, const RopeTable& rope, Tensor cache,
                     std::int64_t position) const;

 private:
  AttentionShape shape(const Pass& pass) const;

  const LayerEnv& env_;
  std::int64_t layer_;
  std::int64_t heads_, kv_heads_;  // on this rank
  Linear qkv_, output_;
};

}  // namespace drivetrain

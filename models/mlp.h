// The feed-forward part of one block: GELU (GPT-2) or SwiGLU (Llama, Qwen2); first projection column-parallel, second
// row-parallel. F = ffn / tp on this rank.
#pragma once
#include <cstdint>

#include "models/layer_env.h"
#include "models/linear.h"

namespace drivetrain {

struct MlpActs {
  Tensor hidden;  // (M, F), or (M, 2 F) gate | up
  Tensor act;     // (M, F)
};

class Mlp {
 public:
  Mlp(std::int64_t layer, const LayerEnv& env);

  void register_backward(ParamStore& store);
  Tensor take_hidden(Arena& arena, std::int64_t rows) const;
  Tensor take_act(Arena& arena, std::int64_t rows) const;

  void up(MlpActs& acts, Tensor x) const { up_.forward(acts.hidden, x); }  // x (M, C), gathered norm output
  void activate(MlpActs& acts) const;
  void down(Tensor partial, const MlpActs& acts) const { down_.forward(partial, acts.act); }
  // dy (M, C) -> partial gradient of x (M, C), reduced by the returned work.
  TensorParallel::Reduction backward(Tensor dx, Tensor dy, Tensor x, const MlpActs& acts, const Pass& pass,
                                     StepContext& ctx);

 private:
  const LayerEnv& env_;
  bool gated_;
  std::int64_t ffn_;  // on this rank
  Linear up_, down_;
};

}  // namespace drivetrain

#include "models/mlp.h"

#include "models/hf_names.h"

namespace drivetrain {

Mlp::Mlp(std::int64_t layer, const LayerEnv& env)
    : env_(env),
      gated_(env.config.family != Family::kGpt2),
      ffn_(env.local_ffn()),
      up_(mlp_up_spec(env.config, layer), env.ops, env.tp_rank),
      down_(mlp_down_spec(env.config, layer), env.ops, env.tp_rank) {}

void Mlp::register_backward(ParamStore& store) {
  down_.register_backward(store);
  up_.register_backward(store);
}

Tensor Mlp::take_hidden(Arena& arena, std::int64_t rows) const {
  return arena.take(env_.compute, {rows, gated_ ? 2 * ffn_ : ffn_});
}

Tensor Mlp::take_act(Arena& arena, std::int64_t rows) const {
  return arena.take(env_.compute, {rows, ffn_});
}

void Mlp::activate(MlpActs& acts) const {
  if (gated_)
    env_.ops.swiglu(acts.act, acts.hidden);
  else
    env_.ops.gelu(acts.act, acts.hidden);
}

TensorParallel::Reduction Mlp::backward(Tensor dx, Tensor dy, Tensor x, const MlpActs& acts, const Pass& pass,
                                        StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  Tensor d_act = take_act(ctx.arena, pass.rows());
  down_.input_grad(d_act, dy);
  down_.weight_grad(dy, acts.act, ctx);
  Tensor d_hidden = gated_ ? take_hidden(ctx.arena, pass.rows()) : d_act;
  if (gated_)
    env_.ops.swiglu_grad(d_hidden, d_act, acts.hidden);
  else
    env_.ops.gelu_grad(d_hidden, d_act, acts.hidden);
  up_.input_grad(dx, d_hidden);
  TensorParallel::Reduction reduction = pass.tp.start_reduce(dx);
  up_.weight_grad(d_hidden, x, ctx);
  return reduction;
}

}  // namespace drivetrain

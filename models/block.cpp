#include "models/block.h"

#include "models/dropout_sites.h"
#include "models/hf_names.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {

TransformerBlock::TransformerBlock(std::int64_t layer, const LayerEnv& env)
    : env_(env),
      layer_(layer),
      norm1_(block_norm_spec(env.config, layer, BlockNorm::kBeforeAttention, env.partial_norms), env.ops),
      norm2_(block_norm_spec(env.config, layer, BlockNorm::kBeforeMlp, env.partial_norms), env.ops),
      attention_(layer, env),
      mlp_(layer, env) {}

void TransformerBlock::register_backward(ParamStore& store) {
  mlp_.register_backward(store);
  norm2_.register_backward(store);
  attention_.register_backward(store);
  norm1_.register_backward(store);
}

void TransformerBlock::take_kept(BlockActs& acts, const Pass& pass, Arena& arena) const {
  if (env_.recompute == Recompute::kFull) return;
  const std::int64_t m = pass.local_rows();
  acts.stats1 = norm1_.take_stats(arena, m);
  acts.stats2 = norm2_.take_stats(arena, m);
  acts.attention = attention_.take_acts(arena, pass);
  acts.x_mid = arena.take(env_.compute, {m, env_.config.dim});
  acts.mlp.hidden = mlp_.take_hidden(arena, pass.rows());
  if (env_.recompute == Recompute::kSelective) return;
  acts.n1 = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  acts.n2 = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  acts.mlp.act = mlp_.take_act(arena, pass.rows());
}

void TransformerBlock::take_missing(BlockActs& acts, const Pass& pass, Arena& arena) const {
  const std::int64_t m = pass.local_rows();
  if (!acts.x_mid.present()) {
    acts.stats1 = norm1_.take_stats(arena, m);
    acts.stats2 = norm2_.take_stats(arena, m);
    acts.attention = attention_.take_acts(arena, pass);
    acts.x_mid = arena.take(env_.compute, {m, env_.config.dim});
    acts.mlp.hidden = mlp_.take_hidden(arena, pass.rows());
  }
  if (acts.n1.present()) return;
  acts.n1 = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  acts.n2 = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  acts.mlp.act = mlp_.take_act(arena, pass.rows());
}

Tensor TransformerBlock::dropped(Tensor y, const Pass& pass, std::uint32_t site) const {
  const Dropout dropout = pass.dropout(env_.config.residual_dropout, site);
  if (dropout.p > 0) env_.ops.dropout(y, y, pass.local_row_keys(), dropout);
  return y;
}

void TransformerBlock::forward_to_last(BlockActs& acts, const Pass& pass, const RopeTable& rope, Arena& arena,
                                       Tensor cache, std::int64_t position) const {
  norm1_.forward(pass.tp.local(acts.n1), acts.stats1, acts.x_in);
  pass.tp.gather(acts.n1);
  if (cache.present())
    attention_.attend_cached(acts.attention, acts.n1, pass, rope, cache, position);
  else
    attention_.attend(acts.attention, acts.n1, pass, rope);

  const auto scope = arena.scope();
  Tensor partial = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  attention_.project(partial, acts.attention);
  Tensor delta = dropped(pass.tp.reduce(partial), pass, dropout_site(layer_, DropoutKind::kAttentionOutput));
  norm2_.forward(pass.tp.local(acts.n2), acts.stats2, acts.x_mid, acts.x_in, delta);
  pass.tp.gather(acts.n2);
  mlp_.up(acts.mlp, acts.n2);
  mlp_.activate(acts.mlp);
}

void TransformerBlock::finish(Tensor x_out, const BlockActs& acts, const Pass& pass, Arena& arena) const {
  const auto scope = arena.scope();
  Tensor partial = arena.take(env_.compute, {pass.rows(), env_.config.dim});
  mlp_.down(partial, acts.mlp);
  Tensor delta = dropped(pass.tp.reduce(partial), pass, dropout_site(layer_, DropoutKind::kMlpOutput));
  env_.ops.add(x_out, acts.x_mid, delta);
}

BlockActs TransformerBlock::forward(Tensor x_out, Tensor x_in, const Pass& pass, const RopeTable& rope,
                                    Arena& arena) const {
  BlockActs kept;
  kept.x_in = x_in;
  take_kept(kept, pass, arena);
  const auto scope = arena.scope();
  BlockActs acts = kept;
  take_missing(acts, pass, arena);
  forward_to_last(acts, pass, rope, arena, Tensor(), 0);
  finish(x_out, acts, pass, arena);
  return kept;
}

void TransformerBlock::infer(Tensor x_out, Tensor x_in, const Pass& pass, const RopeTable& rope, Arena& arena,
                             Tensor cache, std::int64_t position) const {
  const auto scope = arena.scope();
  BlockActs acts;
  acts.x_in = x_in;
  take_missing(acts, pass, arena);
  forward_to_last(acts, pass, rope, arena, cache, position);
  finish(x_out, acts, pass, arena);
}

void TransformerBlock::replay(BlockActs& acts, const Pass& pass, const RopeTable& rope, Arena& arena) const {
  const bool whole = !acts.x_mid.present();
  take_missing(acts, pass, arena);
  if (whole) {
    forward_to_last(acts, pass, rope, arena, Tensor(), 0);
    return;
  }
  norm1_.forward(pass.tp.local(acts.n1), acts.stats1, acts.x_in);
  pass.tp.gather(acts.n1);
  norm2_.forward(pass.tp.local(acts.n2), acts.stats2, acts.x_mid);
  pass.tp.gather(acts.n2);
  mlp_.activate(acts.mlp);
}

void TransformerBlock::backward(Tensor dx, const BlockActs& kept, const Pass& pass, const RopeTable& rope,
                                StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  BlockActs acts = kept;
  if (!acts.n1.present()) {
    const LedgerSpan span(ctx.ledger, Phase::kRecompute);
    replay(acts, pass, rope, ctx.arena);
  }

  // The gradient of a residual branch's output: dx itself, or a masked copy under dropout.
  const auto branch_grad = [&](DropoutKind kind) {
    const Dropout dropout = pass.dropout(env_.config.residual_dropout, dropout_site(layer_, kind));
    if (dropout.p == 0) return pass.tp.gathered(dx, ctx.arena);
    Tensor masked = ctx.arena.take(env_.compute, {dx.dim(0), dx.dim(1)});
    env_.ops.dropout(masked, dx, pass.local_row_keys(), dropout);
    return pass.tp.gathered(masked, ctx.arena);
  };
  Tensor dn = ctx.arena.take(env_.compute, {pass.rows(), env_.config.dim});  // (M, C)
  {
    const auto branch = ctx.arena.scope();
    auto reduction = mlp_.backward(dn, branch_grad(DropoutKind::kMlpOutput), acts.n2, acts.mlp, pass, ctx);
    reduction.work.wait();
    norm2_.backward(dx, reduction.local, acts.x_mid, acts.stats2, ctx);
  }
  {
    const auto branch = ctx.arena.scope();
    auto reduction =
        attention_.backward(dn, branch_grad(DropoutKind::kAttentionOutput), acts.n1, acts.attention, pass, rope, ctx);
    reduction.work.wait();
    norm1_.backward(dx, reduction.local, acts.x_in, acts.stats1, ctx);
  }
}

}  // namespace drivetrain

#include "models/attention.h"

#include <cmath>

#include "models/dropout_sites.h"
#include "models/hf_names.h"

namespace drivetrain {

Attention::Attention(std::int64_t layer, const LayerEnv& env)
    : env_(env),
      layer_(layer),
      heads_(env.local_heads()),
      kv_heads_(env.local_kv_heads()),
      qkv_(qkv_spec(env.config, layer), env.ops, env.tp_rank),
      output_(attention_output_spec(env.config, layer), env.ops, env.tp_rank) {}

void Attention::register_backward(ParamStore& store) {
  output_.register_backward(store);
  qkv_.register_backward(store);
}

AttentionActs Attention::take_acts(Arena& arena, const Pass& pass) const {
  const std::int64_t rows = pass.rows(), d = env_.config.head_dim;
  return {arena.take(env_.compute, {rows, (heads_ + 2 * kv_heads_) * d}),
          arena.take(env_.compute, {rows, heads_ * d}), arena.take(DType::kF32, {pass.sequences, heads_, pass.seq})};
}

AttentionShape Attention::shape(const Pass& pass) const {
  const bool windowed = env_.config.window > 0 && layer_ >= env_.config.window_from_layer;
  return {pass.sequences,
          pass.seq,
          heads_,
          kv_heads_,
          env_.config.head_dim,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(env_.config.head_dim))),
          windowed ? env_.config.window : 0};
}

void Attention::attend(AttentionActs& acts, Tensor x, const Pass& pass, const RopeTable& rope) const {
  const AttentionShape s = shape(pass);
  qkv_.forward(acts.qkv, x);
  if (rope.present()) env_.ops.rope(acts.qkv, pass.batch.positions, rope.cos(), rope.sin(), s);
  env_.ops.attention(acts.y, acts.lse, acts.qkv, pass.batch.doc_starts, pass.batch.row_keys, s,
                     pass.dropout(env_.config.attention_dropout, dropout_site(layer_, DropoutKind::kAttention)),
                     env_.tp_rank * heads_);
}

TensorParallel::Reduction Attention::backward(Tensor dx, Tensor dy, Tensor x, const AttentionActs& acts,
                                              const Pass& pass, const RopeTable& rope, StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  const AttentionShape s = shape(pass);
  Tensor d_heads = ctx.arena.take(env_.compute, {pass.rows(), acts.y.dim(1)});  // (M, H / tp * D)
  Tensor dqkv = ctx.arena.take(env_.compute, {pass.rows(), acts.qkv.dim(1)});
  Tensor delta = ctx.arena.take(DType::kF32, {s.batch, s.heads, s.seq});
  output_.input_grad(d_heads, dy);
  output_.weight_grad(dy, acts.y, ctx);
  env_.ops.attention_grad(dqkv, delta, d_heads, acts.y, acts.lse, acts.qkv, pass.batch.doc_starts,
                          pass.batch.row_keys, s,
                          pass.dropout(env_.config.attention_dropout, dropout_site(layer_, DropoutKind::kAttention)),
                          env_.tp_rank * heads_);
  if (rope.present()) env_.ops.rope_grad(dqkv, pass.batch.positions, rope.cos(), rope.sin(), s);
  qkv_.input_grad(dx, dqkv);
  TensorParallel::Reduction reduction = pass.tp.start_reduce(dx);
  qkv_.weight_grad(dqkv, x, ctx);
  return reduction;
}

void Attention::attend_cached(AttentionActs& acts, Tensor x, const Pass& pass, const RopeTable& rope, Tensor cache,
                              std::int64_t position) const {
  const AttentionShape s = shape(pass);
  qkv_.forward(acts.qkv, x);
  if (rope.present()) env_.ops.rope(acts.qkv, pass.batch.positions, rope.cos(), rope.sin(), s);
  env_.ops.kv_store(cache, acts.qkv, s, position);
  if (position > 0)
    env_.ops.attention_decode(acts.y, acts.qkv, cache, s, position);
  else
    env_.ops.attention(acts.y, acts.lse, acts.qkv, pass.batch.doc_starts, pass.batch.row_keys, s, Dropout{}, 0);
}

}  // namespace drivetrain

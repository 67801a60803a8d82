#include "models/lm_head.h"

#include <algorithm>

namespace drivetrain {

LmHead::LmHead(VocabTable& table, Weight weight, const LayerEnv& env, std::int64_t chunk_bytes)
    : env_(env), table_(table), weight_(weight), chunk_bytes_(chunk_bytes) {}

void LmHead::register_backward(ParamStore& store) {
  if (weight_ == Weight::kOwn) store.add(table_.parameter());
}

std::int64_t LmHead::chunk_rows(std::int64_t rows) const {
  const std::int64_t row_bytes = table_.parameter().value.dim(0) * static_cast<std::int64_t>(size_of(env_.compute));
  const std::int64_t chunks = std::max<std::int64_t>(1, (rows * row_bytes + chunk_bytes_ - 1) / chunk_bytes_);
  return (rows + chunks - 1) / chunks;
}

void LmHead::forward_chunk(Tensor logits, Tensor all_stats, Tensor x, Tensor targets, const Pass& pass,
                           Arena& arena) const {
  const auto scope = arena.scope();
  env_.ops.linear(logits, x, table_.parameter().value, Tensor());
  if (pass.tp.size() == 1) {
    env_.ops.loss_stats(all_stats.reshape({x.dim(0), 3}), logits, targets, table_.slice());
    return;
  }
  Tensor stats = arena.take(DType::kF32, {x.dim(0), 3});
  env_.ops.loss_stats(stats, logits, targets, table_.slice());
  pass.tp.comm().all_gather(all_stats, stats).wait();
}

void LmHead::loss_and_grad(Tensor loss_sum, Tensor dx, Tensor x, const Pass& pass, StepContext& ctx) {
  Parameter& w = table_.parameter();
  Tensor targets = pass.batch.targets.reshape({pass.rows()});
  const std::int64_t chunk = chunk_rows(pass.rows());
  for (std::int64_t begin = 0; begin < pass.rows(); begin += chunk) {
    const auto scope = ctx.arena.scope();
    const std::int64_t end = std::min(begin + chunk, pass.rows());
    Tensor rows = x.rows(begin, end), row_targets = targets.rows(begin, end);
    Tensor logits = ctx.arena.take(env_.compute, {end - begin, w.value.dim(0)});
    Tensor stats = ctx.arena.take(DType::kF32, {pass.tp.size(), end - begin, 3});
    forward_chunk(logits, stats, rows, row_targets, pass, ctx.arena);
    env_.ops.loss_sum(loss_sum, stats, row_targets);
    env_.ops.loss_grad(logits, stats, row_targets, table_.slice(), ctx.grad_scale);
    env_.ops.linear_dx(dx.rows(begin, end), logits, w.value);
    env_.ops.linear_dw(w.grad, logits, rows, ctx.grads.write_mode(w));
  }
  if (weight_ == Weight::kOwn) ctx.grads.ready(w);
}

void LmHead::loss(Tensor loss_sum, Tensor x, const Pass& pass, Arena& arena) const {
  Tensor targets = pass.batch.targets.reshape({pass.rows()});
  const std::int64_t chunk = chunk_rows(pass.rows());
  for (std::int64_t begin = 0; begin < pass.rows(); begin += chunk) {
    const auto scope = arena.scope();
    const std::int64_t end = std::min(begin + chunk, pass.rows());
    Tensor logits = arena.take(env_.compute, {end - begin, table_.parameter().value.dim(0)});
    Tensor stats = arena.take(DType::kF32, {pass.tp.size(), end - begin, 3});
    forward_chunk(logits, stats, x.rows(begin, end), targets.rows(begin, end), pass, arena);
    env_.ops.loss_sum(loss_sum, stats, targets.rows(begin, end));
  }
}

Tensor LmHead::local_logits(Tensor x, Arena& arena) const {
  Tensor logits = arena.take(DType::kF32, {x.dim(0), table_.parameter().value.dim(0)});
  env_.ops.linear(logits, x, table_.parameter().value, Tensor());
  return logits;
}

}  // namespace drivetrain

#include "tests/runtime/tiny_model.h"

#include <cmath>
#include <limits>

#include "tests/runtime/test_parameters.h"

namespace drivetrain::test {

TinyModel::TinyModel(Device& device, Mesh& mesh, const Options& options, const StoreOptions& store)
    : device_(device),
      options_(options),
      embedding_(matrix("embedding", options.vocab, options.dim)),
      weight_(matrix("weight", options.dim, options.dim)),
      bias_(test::vector("bias", options.dim)),
      head_(matrix("head", options.vocab, options.dim)) {
  for (Parameter* p : {&head_, &bias_, &weight_, &embedding_}) store_.add(*p);
  store_.materialize(device, mesh, store);
  float seed = 0.25f;
  for (Parameter* p : {&head_, &bias_, &weight_, &embedding_}) {
    std::vector<float> values(static_cast<std::size_t>(p->value.count()));
    for (float& v : values) v = 0.5f * std::sin(seed += 1.7f);
    store_.write(*p, values);
  }
}

TinyModel::Acts TinyModel::forward(Tensor loss_sum, const Batch& batch, Arena& arena, Dropout dropout) {
  const std::int64_t m = batch.ids.count(), c = options_.dim, v = options_.vocab;
  Ops& ops = device_.ops();
  Acts a;
  a.x = arena.take(options_.compute, {m, c});
  a.y = arena.take(options_.compute, {m, c});
  a.z = arena.take(options_.compute, {m, c});
  a.logits = arena.take(options_.compute, {m, v});
  a.stats = arena.take(DType::kF32, {m, 3});
  ops.embedding(a.x, batch.ids.flat(0, m), embedding_.value, 0, Write::kOverwrite);
  if (dropout.p > 0) ops.dropout(a.x, a.x, batch.row_keys.flat(0, m), dropout);
  ops.linear(a.y, a.x, weight_.value, bias_.value);
  ops.gelu(a.z, a.y);
  ops.linear(a.logits, a.z, head_.value, Tensor());
  if (options_.poison()) {
    const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
    device_.upload(a.logits.flat(0, 1), std::as_bytes(std::span(nan)));
  }
  const Tensor targets = batch.targets.flat(0, m);
  ops.loss_stats(a.stats, a.logits, targets, {0, v});
  ops.loss_sum(loss_sum, a.stats.reshape({1, m, 3}), targets);
  return a;
}

void TinyModel::forward_backward(Tensor loss_sum, const Batch& batch, StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  const std::int64_t m = batch.ids.count();
  const Dropout dropout{options_.dropout, ctx.dropout_seed, 0};
  const Acts a = forward(loss_sum, batch, ctx.arena, dropout);
  const LedgerSpan span(ctx.ledger, Phase::kBackward);
  Ops& ops = device_.ops();
  const Tensor dz = ctx.arena.take(options_.compute, {m, options_.dim});
  const Tensor dx = ctx.arena.take(options_.compute, {m, options_.dim});
  ops.loss_grad(a.logits, a.stats.reshape({1, m, 3}), batch.targets.flat(0, m), {0, options_.vocab}, ctx.grad_scale);
  ops.linear_dw(head_.grad, a.logits, a.z, ctx.grads.write_mode(head_));
  ctx.grads.ready(head_);
  ops.linear_dx(dz, a.logits, head_.value);
  ops.gelu_grad(dz, dz, a.y);
  ops.bias_grad(bias_.grad, dz, ctx.grads.write_mode(bias_));
  ctx.grads.ready(bias_);
  ops.linear_dw(weight_.grad, dz, a.x, ctx.grads.write_mode(weight_));
  ctx.grads.ready(weight_);
  ops.linear_dx(dx, dz, weight_.value);
  if (dropout.p > 0) ops.dropout(dx, dx, batch.row_keys.flat(0, m), dropout);
  ops.embedding_grad(embedding_.grad, batch.ids.flat(0, m), dx, 0, ctx.grads.write_mode(embedding_));
  ctx.grads.ready(embedding_);
}

void TinyModel::evaluate(Tensor loss_sum, const Batch& batch, Arena& arena) {
  const auto scope = arena.scope();
  forward(loss_sum, batch, arena, {});
}

std::vector<float> TinyModel::logits(std::span<const std::int32_t>, KvCache*, Rows, Arena&) {
  throw Error(ErrorKind::kLogic, "the tiny model of the tests generates nothing");
}

std::int64_t TinyModel::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter* p : store_.parameters()) n += p->full_rows() * p->cols;
  return n;
}

}  // namespace drivetrain::test

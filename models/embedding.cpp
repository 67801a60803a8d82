#include "models/embedding.h"

#include "models/dropout_sites.h"
#include "models/hf_names.h"

namespace drivetrain {

namespace {

// Whole vectors make the head's products faster (50257 is odd); small vocabularies are dealt row by row.
std::int64_t vocab_unit(std::int64_t vocab) {
  return vocab >= 4096 ? 64 : 1;
}

}  // namespace

VocabTable::VocabTable(const std::string& name, const std::string& hf_name, const LayerEnv& env) {
  const std::int64_t vocab = env.config.vocab;
  parameter_.name = name;
  parameter_.blocks = {Block{vocab, hf_name, 0, vocab, false, vocab_unit(vocab)}};
  parameter_.cols = env.config.dim;
  parameter_.split = Split::kRows;
  parameter_.init_std = static_cast<float>(env.config.init_std);
  const LocalRows rows = local_rows(parameter_, 0, env.tp, env.tp_rank);
  slice_ = {rows.block_begin, rows.count};
}

Embedding::Embedding(VocabTable& tokens, const LayerEnv& env)
    : env_(env), tokens_(tokens), learned_positions_(env.config.family == Family::kGpt2) {
  const std::int64_t n = env.config.positions;
  positions_.name = "position_embedding";
  positions_.blocks = {Block{n, position_embedding_name(env.config), 0, n, false}};
  positions_.cols = env.config.dim;
  positions_.tp_partial = env.partial_norms;
  positions_.init_std = static_cast<float>(env.config.init_std);
}

void Embedding::register_backward(ParamStore& store) {
  if (learned_positions_) store.add(positions_);
  store.add(tokens_.parameter());
}

void Embedding::forward(Tensor x, const Pass& pass, Arena& arena) const {
  const auto scope = arena.scope();
  Tensor ids = pass.batch.ids.reshape({pass.rows()});
  Tensor table = tokens_.parameter().value;
  if (pass.tp.size() == 1) {
    env_.ops.embedding(x, ids, table, 0, Write::kOverwrite);
  } else {
    Tensor partial = arena.take(env_.compute, {pass.rows(), env_.config.dim});
    env_.ops.embedding(partial, ids, table, tokens_.slice().begin, Write::kOverwrite);
    env_.ops.copy(x, pass.tp.reduce(partial));
  }
  if (learned_positions_) {
    Tensor positions = pass.tp.local(pass.batch.positions.reshape({pass.rows()}));
    env_.ops.embedding(x, positions, positions_.value, 0, Write::kAccumulate);
  }
  const Dropout dropout = pass.dropout(env_.config.embed_dropout, dropout_site(0, DropoutKind::kEmbedding));
  if (dropout.p > 0) env_.ops.dropout(x, x, pass.local_row_keys(), dropout);
}

void Embedding::backward(Tensor dx, const Pass& pass, StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  const Dropout dropout = pass.dropout(env_.config.embed_dropout, dropout_site(0, DropoutKind::kEmbedding));
  if (dropout.p > 0) env_.ops.dropout(dx, dx, pass.local_row_keys(), dropout);
  if (learned_positions_) {
    Tensor positions = pass.tp.local(pass.batch.positions.reshape({pass.rows()}));
    env_.ops.embedding_grad(positions_.grad, positions, dx, 0, ctx.grads.write_mode(positions_));
    ctx.grads.ready(positions_);
  }
  Parameter& table = tokens_.parameter();
  env_.ops.embedding_grad(table.grad, pass.batch.ids.reshape({pass.rows()}), pass.tp.gathered(dx, ctx.arena),
                          tokens_.slice().begin, ctx.grads.write_mode(table));
  ctx.grads.ready(table);
}

}  // namespace drivetrain

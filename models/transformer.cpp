#include "models/transformer.h"

#include "models/hf_names.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {
namespace {

TransformerOptions checked(TransformerOptions options, int tp) {
  check_tensor_parallel(options.config, tp);
  if (options.positions == 0) options.positions = options.config.positions;
  if (options.config.family == Family::kGpt2 && options.positions > options.config.positions)
    throw Error(ErrorKind::kConfig, "the model has " + std::to_string(options.config.positions) +
                                        " learned positions; sequences of " + std::to_string(options.positions) +
                                        " tokens need a shorter data.seq_len");
  if (tp == 1) options.residual = TensorParallel::Residual::kReplicated;
  return options;
}

}  // namespace

Transformer::Transformer(Device& device, Mesh& mesh, const TransformerOptions& options)
    : device_(device),
      mesh_(mesh),
      options_(checked(options, mesh.tp().size())),
      env_{device.ops(),      options_.config,  options_.compute,
           mesh.tp().size(),  mesh.tp().rank(), options_.residual == TensorParallel::Residual::kSharded,
           options_.recompute} {
  const ModelConfig& c = options_.config;
  if (c.family != Family::kGpt2) rope_ = RopeTable(device, c, options_.positions);
  tokens_ = std::make_unique<VocabTable>("token_embedding", token_embedding_name(c), env_);
  if (!c.tied) head_table_ = std::make_unique<VocabTable>("head", head_name(c), env_);
  embedding_ = std::make_unique<Embedding>(*tokens_, env_);
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    blocks_.push_back(std::make_unique<TransformerBlock>(layer, env_));
  norm_ = std::make_unique<Norm>(final_norm_spec(c, env_.partial_norms), env_.ops);
  head_ = std::make_unique<LmHead>(c.tied ? *tokens_ : *head_table_,
                                   c.tied ? LmHead::Weight::kTied : LmHead::Weight::kOwn, env_,
                                   options_.logits_chunk_bytes);

  head_->register_backward(store_);
  norm_->register_backward(store_);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) (*block)->register_backward(store_);
  embedding_->register_backward(store_);
  if (options_.use == TransformerOptions::Use::kInference)
    for (Parameter* p : store_.parameters()) p->trainable = false;
}

Pass Transformer::make_pass(const Batch& batch, TensorParallel::Residual residual, std::uint64_t dropout_seed) const {
  return {batch, TensorParallel(mesh_.tp(), residual), batch.ids.dim(0), batch.ids.dim(1), dropout_seed};
}

void Transformer::forward_backward(Tensor loss_sum, const Batch& batch, StepContext& ctx) {
  const auto scope = ctx.arena.scope();
  const Pass pass = make_pass(batch, options_.residual, ctx.dropout_seed);
  const std::int64_t m = pass.local_rows(), dim = options_.config.dim;
  const auto take_rows = [&](std::int64_t rows) { return ctx.arena.take(options_.compute, {rows, dim}); };

  Tensor x = take_rows(m);
  embedding_->forward(x, pass, ctx.arena);
  std::vector<BlockActs> acts;
  acts.reserve(blocks_.size());
  for (const auto& block : blocks_) {
    Tensor x_out = take_rows(m);
    acts.push_back(block->forward(x_out, x, pass, rope_, ctx.arena));
    x = x_out;
  }

  const LedgerSpan backward(ctx.ledger, Phase::kBackward);
  Tensor dx = take_rows(m);
  {
    const auto head = ctx.arena.scope();
    NormStats stats = norm_->take_stats(ctx.arena, m);
    Tensor n = take_rows(pass.rows()), dn = take_rows(pass.rows());
    norm_->forward(pass.tp.local(n), stats, x);
    pass.tp.gather(n);
    head_->loss_and_grad(loss_sum, dn, n, pass, ctx);
    env_.ops.zero(dx);
    norm_->backward(dx, pass.tp.reduce(dn), x, stats, ctx);
  }
  for (std::size_t layer = blocks_.size(); layer-- > 0;) blocks_[layer]->backward(dx, acts[layer], pass, rope_, ctx);
  embedding_->backward(dx, pass, ctx);
}

void Transformer::evaluate(Tensor loss_sum, const Batch& batch, Arena& arena) {
  const auto scope = arena.scope();
  const Pass pass = make_pass(batch, options_.residual, 0);
  const std::int64_t m = pass.local_rows(), dim = options_.config.dim;
  Tensor x = arena.take(options_.compute, {m, dim});
  embedding_->forward(x, pass, arena);
  for (const auto& block : blocks_) block->infer(x, x, pass, rope_, arena, Tensor(), 0);
  NormStats stats = norm_->take_stats(arena, m);
  Tensor n = arena.take(options_.compute, {pass.rows(), dim});
  norm_->forward(pass.tp.local(n), stats, x);
  pass.tp.gather(n);
  head_->loss(loss_sum, n, pass, arena);
}

std::string Transformer::description() const {
  const ModelConfig& c = options_.config;
  const char* family = c.family == Family::kGpt2 ? "gpt2" : c.family == Family::kLlama ? "llama" : "qwen2";
  return std::string(family) + ", " + std::to_string(c.layers) + " layers, dim " + std::to_string(c.dim) + ", " +
         std::to_string(c.heads) + " heads (" + std::to_string(c.kv_heads) + " kv), ffn " + std::to_string(c.ffn) +
         ", vocab " + std::to_string(c.vocab) + ", " + std::to_string(parameter_count()) + " parameters";
}

std::int64_t Transformer::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter* p : store_.parameters()) n += p->full_rows() * p->cols;
  return n;
}

}  // namespace drivetrain

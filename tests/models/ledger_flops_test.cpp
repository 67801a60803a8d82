// What the ledger counts over one step of a real model against the formulas of flops.h. Nothing is computed.
#include <gtest/gtest.h>

#include "kernels/plan_device.h"
#include "models/transformer.h"
#include "runtime/batch_buffer.h"
#include "runtime/comm/plan_comm.h"
#include "runtime/flops.h"
#include "runtime/ledger/ledger_device.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kMicro = 2, kSeq = 64;

ModelConfig shape(Family family) {
  ModelConfig c;
  c.family = family;
  c.layers = 3;
  c.dim = 32;
  c.heads = 4;
  c.kv_heads = family == Family::kGpt2 ? 4 : 2;
  c.head_dim = 8;
  c.ffn = 96;
  c.vocab = 128;
  c.positions = kSeq;
  c.tied = family == Family::kGpt2;
  c.qkv_bias = c.output_bias = c.mlp_bias = family == Family::kGpt2;
  return c;
}

FlopsShape flops_shape(const ModelConfig& c) {
  return {.layers = c.layers,
          .dim = c.dim,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim,
          .ffn = c.ffn,
          .gated = c.family != Family::kGpt2,
          .vocab = c.vocab,
          .seq = kSeq};
}

// One forward and backward of tensor rank 0.
StepRecord step(const ModelConfig& config, int tp, Recompute recompute) {
  StepLedger ledger;
  LedgerDevice device(make_plan_device(nullptr), ledger);
  Mesh mesh({1, tp}, make_plan_communicator(0, tp), make_plan_communicator(0, 1), make_plan_communicator(0, tp));
  TransformerOptions options;
  options.config = config;
  options.compute = DType::kBF16;
  options.recompute = recompute;
  options.positions = kSeq;
  options.logits_chunk_bytes = 4096;  // several chunks
  Transformer model(device, mesh, options);
  model.store().materialize(device, mesh, {});
  GradReducer grads(model.store(), mesh, device, DType::kF32);
  Arena arena(Buffer(device, std::size_t{1} << 40));
  BatchBuffer batches(device, kMicro, kSeq);
  constexpr auto kTokens = static_cast<std::size_t>(kMicro * kSeq);
  HostBatch host;
  for (auto* part : {&host.ids, &host.targets, &host.positions, &host.doc_starts}) part->resize(kTokens);
  host.row_keys.resize(kTokens);
  const Batch batch = batches.upload(host);
  const Buffer loss(device, sizeof(double));
  StepContext ctx{.arena = arena, .grads = grads, .ledger = &ledger};
  grads.begin_step();
  grads.begin_micro(GradReducer::Micro::kLast);
  {
    const LedgerSpan span(&ledger, Phase::kForward);
    model.forward_backward(loss.tensor(DType::kF64), batch, ctx);
  }
  return ledger.end_step(1, kMicro * kSeq);
}

TEST(LedgerFlops, OfAStepAreThoseOfTheFormulas) {
  for (const Family family : {Family::kLlama, Family::kGpt2})
    for (const int tp : {1, 2}) {
      const ModelConfig config = shape(family);
      const StepRecord r = step(config, tp, Recompute::kNone);
      const FlopsShape s = flops_shape(config);
      const double tokens = kMicro * kSeq;
      EXPECT_EQ(r.at(OpClass::kGemm).flops * tp, tokens * (block_matmul_flops(s) + head_flops(s)));
      // Two products forward and five backward, where the formula counts two and four.
      EXPECT_EQ(r.at(OpClass::kAttention).flops * tp, tokens * attention_flops_causal(s) * 7 / 6);
    }
}

TEST(LedgerFlops, RecomputationIsCountedWhereItRuns) {
  const ModelConfig config = shape(Family::kLlama);
  const StepRecord none = step(config, 1, Recompute::kNone), full = step(config, 1, Recompute::kFull);
  EXPECT_EQ(none.at(TimeClass::kRecompute), 0);
  EXPECT_GT(full.at(TimeClass::kRecompute), 0);
  const FlopsShape s = flops_shape(config);
  const double tokens = kMicro * kSeq, down = 2.0 * 32 * 96 * 3;  // the last projection is not replayed
  EXPECT_EQ(full.at(OpClass::kGemm).flops - none.at(OpClass::kGemm).flops,
            tokens * (block_matmul_flops(s) / 3 - down));
  EXPECT_EQ(full.at(OpClass::kAttention).flops * 7, none.at(OpClass::kAttention).flops * 9);
}

}  // namespace
}  // namespace drivetrain

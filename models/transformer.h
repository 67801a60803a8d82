// A decoder-only transformer (GPT-2, Llama, Qwen2) as explicit layers with forward and backward. It knows tensors and
// tensor ranks; not data ranks, files or the step.
#pragma once
#include <memory>
#include <vector>

#include "models/block.h"
#include "models/lm_head.h"
#include "models/model_config.h"
#include "runtime/mesh.h"

namespace drivetrain {

struct TransformerOptions {
  ModelConfig config;
  DType compute = DType::kBF16;
  Recompute recompute = Recompute::kNone;
  TensorParallel::Residual residual = TensorParallel::Residual::kSharded;
  enum class Use { kTraining, kInference } use = Use::kTraining;  // inference: weights only, no gradient, no master
  std::int64_t positions = 0;                                     // longest sequence of this run; 0: config.positions
  std::int64_t logits_chunk_bytes = 64ll << 20;                   // logits of at most so many bytes exist at a time
};

class Transformer final : public Model {
 public:
  // Registers the parameters; memory is allocated by store().materialize(). Throws kConfig when the model cannot be
  // cut over the tensor ranks.
  Transformer(Device& device, Mesh& mesh, const TransformerOptions& options);

  ParamStore& store() override { return store_; }
  std::string description() const override;
  void forward_backward(Tensor loss_sum, const Batch& batch, StepContext& ctx) override;
  void evaluate(Tensor loss_sum, const Batch& batch, Arena& arena) override;
  std::vector<float> logits(std::span<const std::int32_t> ids, KvCache* cache, Rows rows, Arena& arena) override;
  std::unique_ptr<KvCache> make_cache(std::int64_t capacity) override;
  std::int64_t parameter_count() const override;
  std::int64_t vocab_size() const override { return options_.config.vocab; }
  std::int64_t max_positions() const override { return options_.positions; }
  const ModelConfig& config() const { return options_.config; }

 private:
  // The residual stream after the last block (rows, C), for logits of `ids` at positions [begin, ...).
  Tensor run_tokens(std::span<const std::int32_t> ids, std::int64_t begin, KvCache* cache, Arena& arena);
  std::vector<float> gather_logits(Tensor x, Arena& arena);
  Pass make_pass(const Batch& batch, TensorParallel::Residual residual, std::uint64_t dropout_seed) const;

  Device& device_;
  Mesh& mesh_;
  TransformerOptions options_;
  LayerEnv env_;
  ParamStore store_;
  RopeTable rope_;
  std::unique_ptr<VocabTable> tokens_, head_table_;  // head_table_ is null when tied
  std::unique_ptr<Embedding> embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<LmHead> head_;
};

}  // namespace drivetrain

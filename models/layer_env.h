// What every layer of a transformer needs to be built and run: passed by reference, owned by the transformer.
#pragma once
#include <cstdint>

#include "kernels/ops.h"
#include "models/model_config.h"
#include "models/tensor_parallel.h"
#include "runtime/model.h"

namespace drivetrain {

struct LayerEnv {
  Ops& ops;
  const ModelConfig& config;
  DType compute;
  int tp = 1, tp_rank = 0;
  bool partial_norms = false;  // norm gradients are partial: sequence parallelism in training
  Recompute recompute = Recompute::kNone;

  // What each tensor rank has room for; where the division leaves a rest, the last ranks hold padding.
  std::int64_t local_kv_heads() const { return (config.kv_heads + tp - 1) / tp; }
  std::int64_t local_heads() const { return config.heads / config.kv_heads * local_kv_heads(); }
  std::int64_t local_ffn() const { return (config.ffn + tp - 1) / tp; }
};

// One pass over a batch: the batch on this rank and how it lies over the tensor ranks.
struct Pass {
  const Batch& batch;
  TensorParallel tp;
  std::int64_t sequences, seq;     // B, T of the batch
  std::uint64_t dropout_seed = 0;  // 0: no dropout
  Tensor local_row_keys() const { return tp.local(batch.row_keys.reshape({rows()})); }
  std::int64_t rows() const { return sequences * seq; }
  std::int64_t local_rows() const { return tp.local_rows(rows()); }
  Dropout dropout(double p, std::uint32_t site) const {
    return {dropout_seed == 0 ? 0.0f : static_cast<float>(p), dropout_seed, site};
  }
};

}  // namespace drivetrain

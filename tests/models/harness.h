// Trains a small transformer for a few steps on thread ranks, in any layout, and returns what must not depend on it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "models/transformer.h"

namespace drivetrain::testing {

// Tiny shapes of the handed cases: hidden 32, 2 layers, 4 heads, 2 kv heads, ffn 64, vocab 97.
ModelConfig tiny_llama();
ModelConfig tiny_qwen2();
ModelConfig tiny_gpt2();
// Three key/value heads and a prime ffn: no tp above 1 divides them (SmolLM2-135M has 9 heads, 3 kv heads).
ModelConfig uneven_llama();

struct RunSpec {
  ModelConfig config;
  int dp = 1, tp = 1;
  bool progress = false;  // collectives in the background, the smallest too
  TensorParallel::Residual residual = TensorParallel::Residual::kSharded;
  Recompute recompute = Recompute::kNone;
  StoreOptions::Shard shard = StoreOptions::Shard::kOptimizer;
  DType compute = DType::kF32;
  std::size_t bucket_bytes = 16 << 10;
  std::int64_t logits_chunk_bytes = 64ll << 20;
  std::int64_t global = 4, micro = 1, seq = 16;  // sequences per step, per forward; tokens per sequence
  int steps = 10;
  int documents = 1;   // per sequence
  double ignored = 0;  // share of ignored targets
  std::uint64_t seed = 7;
};

struct RunResult {
  std::vector<double> losses, norms;
  std::size_t arena_peak_bytes = 0;
  // Every master value of the local shard of world rank 0, for bit comparisons at one layout.
  std::vector<float> master;
};

RunResult train(const RunSpec& spec);

// Largest relative difference of losses and norms.
double relative_difference(const RunResult& a, const RunResult& b);

}  // namespace drivetrain::testing

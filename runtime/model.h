// What the step loop knows of a model. `models/` implements it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/arena.h"
#include "runtime/grad_reducer.h"
#include "runtime/ledger/step_ledger.h"
#include "runtime/param_store.h"

namespace drivetrain {

// One micro-batch of one data rank, on the device. All tensors (B, T).
struct Batch {
  Tensor ids;         // i32
  Tensor targets;     // i32, already shifted: targets[t] is what follows ids[t]; Ops::kIgnore = no loss
  Tensor positions;   // i32, restart in each document
  Tensor doc_starts;  // i32, index inside the sequence where the token's document starts
  Tensor row_keys;    // i64, global sample index * T + t: the counter of dropout
};

struct StepContext {
  Arena& arena;
  GradReducer& grads;
  float grad_scale = 1;            // d(loss)/d(sum of token losses): loss scale / targets in the global step
  std::uint64_t dropout_seed = 0;  // run seed mixed with the step; dropout itself is a property of the model
  StepLedger* ledger = nullptr;    // for spans of backward and recompute; null: not measured
};

enum class Recompute { kNone, kSelective, kFull };

class KvCache {  // state of generation, made by the model
 public:
  virtual ~KvCache() = default;
  virtual std::int64_t length() const = 0;
  virtual std::int64_t capacity() const = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual ParamStore& store() = 0;
  virtual std::string description() const = 0;  // "llama 4 layers, dim 256, ..."

  // Adds the sum of token losses of the batch (whole vocabulary, all tensor ranks agree) to loss_sum f64 (1) and the
  // gradients to the store. Collective over tp.
  virtual void forward_backward(Tensor loss_sum, const Batch& batch, StepContext& ctx) = 0;
  // Loss only; no dropout.
  virtual void evaluate(Tensor loss_sum, const Batch& batch, Arena& arena) = 0;
  // Logits (rows, vocab) of one sequence in host memory, equal on every tensor rank, no dropout; for tests and
  // generation. With a cache (may be null) ids continue what it holds, and it is extended. Collective over tp.
  enum class Rows { kAll, kLast };
  virtual std::vector<float> logits(std::span<const std::int32_t> ids, KvCache* cache, Rows rows, Arena& arena) = 0;
  virtual std::unique_ptr<KvCache> make_cache(std::int64_t capacity) = 0;

  virtual std::int64_t parameter_count() const = 0;  // logical, tied once
  virtual std::int64_t vocab_size() const = 0;
  virtual std::int64_t max_positions() const = 0;
};

}  // namespace drivetrain

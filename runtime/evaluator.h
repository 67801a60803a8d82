// Loss and perplexity of a model over a data set, dealt over the data ranks. Trains nothing.
#pragma once
#include <cstdint>

#include "runtime/batch_buffer.h"
#include "runtime/data/dataset.h"

namespace drivetrain {

struct EvalResult {
  double loss_sum = 0;       // of the token losses
  std::int64_t targets = 0;  // tokens with a loss
  std::int64_t samples = 0;
  double loss() const;        // mean per target; NaN without targets
  double perplexity() const;  // exp(loss)
};

struct EvalOptions {
  std::int64_t micro = 1;    // sequences per forward
  std::int64_t batches = 0;  // micro-batches per data rank; 0: the whole data set
};

class Evaluator {
 public:
  Evaluator(Device& device, Mesh& mesh, const Dataset& dataset, const EvalOptions& options);
  // Collective over the world, equal on every rank. Data rank d takes samples d, d + dp, ...: the last may have none.
  EvalResult run(Model& model, Arena& arena);

 private:
  void fill(HostBatch& batch, std::int64_t first_turn);

  Device& device_;
  Mesh& mesh_;
  const Dataset& dataset_;
  EvalOptions options_;
  BatchBuffer batch_;
  Buffer sums_;
};

}  // namespace drivetrain

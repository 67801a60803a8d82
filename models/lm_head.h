// Output projection to the vocabulary and cross-entropy, both cut over the tensor ranks by vocabulary rows; only three
// numbers a token cross between ranks. Tokens are worked through in chunks, so the logits never exist as a whole.
#pragma once
#include "models/embedding.h"

namespace drivetrain {

class LmHead {
 public:
  enum class Weight { kOwn, kTied };
  // table: the head's own matrix, or the token embedding when tied (then the embedding completes its gradient).
  LmHead(VocabTable& table, Weight weight, const LayerEnv& env, std::int64_t chunk_bytes);
  void register_backward(ParamStore& store);

  // x (M, C) gathered. Adds the token losses to loss_sum; dx (M, C) becomes this rank's partial gradient.
  void loss_and_grad(Tensor loss_sum, Tensor dx, Tensor x, const Pass& pass, StepContext& ctx);
  void loss(Tensor loss_sum, Tensor x, const Pass& pass, Arena& arena) const;
  // f32 (rows, padded local vocabulary) of this tensor rank.
  Tensor local_logits(Tensor x, Arena& arena) const;

 private:
  std::int64_t chunk_rows(std::int64_t rows) const;
  // Logits of x and the statistics of all tensor ranks, f32 (tp, rows, 3).
  void forward_chunk(Tensor logits, Tensor all_stats, Tensor x, Tensor targets, const Pass& pass, Arena& arena) const;

  const LayerEnv& env_;
  VocabTable& table_;
  Weight weight_;
  std::int64_t chunk_bytes_;
};

}  // namespace drivetrain

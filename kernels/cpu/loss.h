// Softmax cross-entropy over a vocabulary slice on the CPU: per-row statistics, the loss from gathered statistics, and
// the gradient in place. One pass over the logits each for the statistics and the gradient.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

// Rows whose target is Ops::kIgnore are skipped: their stats are 0, 0, 0. An empty slice gives -inf, 0, 0.
void loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice);
void loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets);
void loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale);

}  // namespace drivetrain::cpu

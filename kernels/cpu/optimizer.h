// The AdamW update and the sum of squares behind the gradient norm, on the CPU.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

// Sums in f64 over blocks whose bounds depend on the count alone.
void sum_squares(Tensor out, Tensor x);
// torch.optim.AdamW's order of operations. `value` may be `master` itself when both are f32.
void adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs& args);

}  // namespace drivetrain::cpu

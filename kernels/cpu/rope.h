// Rotary position embedding of the q and k columns of a fused qkv, in place, and its inverse, on the CPU.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

// Throws kLogic when a position has no row in `cos` and `sin`.
void rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s);
void rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s);

}  // namespace drivetrain::cpu

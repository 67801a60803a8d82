// Plain elementwise ops of the CPU backend: zero, add, and the column sum that is a bias
// gradient. Shapes and errors as in kernels/ops.h.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void zero(Tensor x);
void add(Tensor y, Tensor a, Tensor b);
void bias_grad(Tensor db, Tensor dy, Write write);

}  // namespace drivetrain::cpu

// Plain elementwise ops of the CPU backend: zero, copy with conversion, add, and the column sum that is a bias
// gradient. Shapes and errors as in kernels/ops.h.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void zero(Tensor x);
// Converts between f32, bf16, f16 and f64 (f64 to a 16-bit type goes through f32); other types only to themselves.
void copy(Tensor y, Tensor x);
void add(Tensor y, Tensor a, Tensor b);
void bias_grad(Tensor db, Tensor dy, Write write);

}  // namespace drivetrain::cpu

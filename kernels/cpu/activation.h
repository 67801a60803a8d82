// GELU (tanh form) and SwiGLU with their gradients on the CPU, computed in f32 and rounded once.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void gelu(Tensor y, Tensor x);
void gelu_grad(Tensor dx, Tensor dy, Tensor x);
void swiglu(Tensor y, Tensor gate_up);
void swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up);

}  // namespace drivetrain::cpu

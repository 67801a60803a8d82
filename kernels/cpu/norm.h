// RMSNorm and LayerNorm with the residual addition before them, and their gradients, on the CPU. Shapes and rounding
// as in kernels/ops.h; `sum` may be `x` or `delta`.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps);
void rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write);
void layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w, Tensor b,
                float eps);
void layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor inv_std,
                     Write write);

}  // namespace drivetrain::cpu

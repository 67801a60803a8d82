// The arithmetic peak of this processor, measured: the denominator of model FLOPs utilisation. Not a benchmark of memory
// or of the kernels.
#pragma once
#include "kernels/tensor.h"

namespace drivetrain::cpu {

// Multiply-adds per second (x 2) between registers on `threads` threads at once: in f32, and for bf16 also by dot
// products of pairs where the processor has them; the better counts. Takes 30 ms of each thread for each of the two,
// counts the best 2 ms of processor time, so that other work on the machine does not lower the result.
double measure_peak_flops(DType dtype, int threads);

}  // namespace drivetrain::cpu

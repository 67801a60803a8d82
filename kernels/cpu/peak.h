// The arithmetic peak of this processor, measured: the denominator of model FLOPs utilisation. Not a benchmark of memory
// or of the kernels.
#pragma once
#include "kernels/tensor.h"

namespace drivetrain::cpu {

// Multiply-adds per second (x 2) between registers on `threads` threads at once: dot products of bf16 pairs where the
// processor has them, f32 otherwise and for every other type. Takes 30 ms; each thread counts its best 2 ms, so that
// other work on the machine does not lower it.
double measure_peak_flops(DType dtype, int threads);

}  // namespace drivetrain::cpu

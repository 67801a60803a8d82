// Copies with conversion, for the CPU backend and the collectives.
#pragma once
#include <limits>

#include "kernels/tensor.h"

namespace drivetrain::cpu {

// y = x, same count. Converts between f32, bf16, f16 and f64 (f64 to a 16-bit type goes through f32); other types only to
// themselves. Uses no more than `threads` of the caller's threads.
void copy(Tensor y, Tensor x, int threads = std::numeric_limits<int>::max());

}  // namespace drivetrain::cpu

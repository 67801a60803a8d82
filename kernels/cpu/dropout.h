// Dropout on the CPU: the op, and the mask it is made of for whoever drops something else (attention probabilities).
// A mask bit depends on (seed, site, row key, column) alone.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout);

// out[i] = 0 (dropped) or 1 / (1 - p) (kept) for the columns column_begin + i of one row, 0 <= i < count. Needs
// 0 <= p < 1 and columns below 2^34. Vectorised; cheap to call for a few dozen columns. Bits: word `column % 4` of
// philox(counter {column / 4, site, row_key low, row_key high}, key {seed low, seed high}) drops when it is below
// p 2^32.
void keep_scales(float* out, std::int64_t row_key, std::int64_t column_begin, std::int64_t count,
                 const Dropout& dropout);

}  // namespace drivetrain::cpu

// What uses the processor's bf16 dot product directly. CMake picks the file for the processor; only to be called where
// has_bf16_dot().
#pragma once
#include "kernels/cpu/tile_product.h"

namespace drivetrain::cpu {

void bf16_tile_product(const TileProduct<Bf16Pair>& p);

// `rounds` rounds of dot products between registers, as many as hide their latency; `sink` (1 at first) carries what must not
// be optimised away. Returns the floating-point operations done (a multiply and an add count as two).
double bf16_dot_rounds(std::int64_t rounds, float& sink);

}  // namespace drivetrain::cpu

// Small matrix products on tiles that fit the caches, for attention: c (m, n) (+)= a b with operands in "units": one
// f32, or two bf16 neighbours along k in one 32-bit word. Not for whole layers (those are kernels/cpu/matmul.h).
#pragma once
#include <cstdint>

#include "kernels/ops.h"

namespace drivetrain::cpu {

struct Bf16Pair {
  std::uint32_t bits;  // lower half: even k, upper half: odd k
};

// Elements of k in one unit.
template <class Unit>
inline constexpr std::int64_t kPerUnit = sizeof(Unit) / sizeof(float);
template <>
inline constexpr std::int64_t kPerUnit<Bf16Pair> = 2;

template <class Unit>
constexpr std::int64_t units(std::int64_t elements) {
  return (elements + kPerUnit<Unit> - 1) / kPerUnit<Unit>;
}

// Columns of tiles are padded to this many floats: a whole number of vectors on every instruction set.
inline constexpr std::int64_t kTileLanes = 16;
constexpr std::int64_t padded(std::int64_t columns) {
  return (columns + kTileLanes - 1) / kTileLanes * kTileLanes;
}

template <class Unit>
struct TileProduct {
  float* c;  // (i, j) at c[i * c_stride + j]
  std::int64_t c_stride;
  const Unit* a;  // (i, k) at a[i * a_row + k * a_step]
  std::int64_t a_row, a_step;
  const Unit* b;  // (k, j) at b[k * b_stride + j]
  std::int64_t b_stride;
  std::int64_t m, n, k;  // n a multiple of kTileLanes; k in units
  Write write;
};

}  // namespace drivetrain::cpu

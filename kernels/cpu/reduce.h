// Elementwise reduction of several host buffers into one or several, the arithmetic of the host collectives. It knows
// nothing of ranks: order, buffers and slices are the caller's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/tensor.h"

namespace drivetrain::cpu {

enum class Reduction { kSum, kMax, kMin, kAverage };

// dsts[k][i] = op over s of sources[s][i], folded in the order of `sources`, for 0 <= i < count and every k: one pass
// over memory. bf16 and f16 accumulate in f32 and round once; f32 and f64 accumulate in their own type; integers wrap
// (average truncates towards zero, its sum is 64 bits wide). A NaN source gives NaN. A destination may be exactly one
// of the sources; any other overlap is not allowed. All pointers aligned to the element. Large results bypass the
// cache on their way to destinations that are no source. They are visible to other processors when the call returns.
// Uses no more than `threads` of the caller's threads. Throws kLogic without a source or destination.
void reduce(std::span<std::byte* const> dsts, std::span<const std::byte* const> sources, DType dtype, Reduction op,
            std::int64_t count, int threads = std::numeric_limits<int>::max());

inline void reduce(std::byte* dst, std::span<const std::byte* const> sources, DType dtype, Reduction op,
                   std::int64_t count) {
  reduce(std::span<std::byte* const>(&dst, 1), sources, dtype, op, count);
}

}  // namespace drivetrain::cpu

// What the host transports do to bytes: copies, and the bridge from ReduceOp to the host reduction of kernels/cpu.
#pragma once
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "runtime/comm/communicator.h"

namespace drivetrain {

inline std::size_t bytes_of(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

// Allows no bytes at no address, and a copy onto itself.
inline void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (bytes > 0 && dst != src) std::memcpy(dst, src, bytes);
}

// cpu::reduce(): every target gets op over the sources, folded in their order, by at most `threads` threads.
void reduce_into(std::span<std::byte* const> targets, std::span<const std::byte* const> sources, DType dtype,
                 ReduceOp op, std::int64_t count, int threads = std::numeric_limits<int>::max());

// The type in which sums of `dtype` are carried on: f32 for 16-bit types, i64 for averages of narrow integers.
DType carry_type(DType dtype, ReduceOp op);
// Element by element; rounds to nearest even, integers wrap. From any type to its carry type and back.
void convert(const Tensor& out, const Tensor& in);
// x /= n; integers truncate towards zero.
void divide(const Tensor& x, int n);

}  // namespace drivetrain

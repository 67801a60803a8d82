// Numbers as files store them to float and back. Knows no files.
#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "runtime/checkpoint/safetensors.h"

namespace drivetrain {

// bytes: out.size() elements of dtype, unaligned. Exact, but F64 rounds to nearest. Returns the index of the first
// element that float cannot hold: an integer that would be rounded, a finite F64 beyond the range of float.
std::optional<std::size_t> to_floats(std::span<float> out, FileDType dtype, std::span<const std::byte> bytes);
// out: values.size() elements of kF32, kBF16 or kF16 (rounded to nearest even). Returns the index of the first finite
// value that would become infinite.
std::optional<std::size_t> from_floats(std::span<std::byte> out, FileDType dtype, std::span<const float> values);

}  // namespace drivetrain

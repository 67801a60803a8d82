// The two 16-bit storage types, bf16 and IEEE half, as plain structs with conversions that round to nearest even.
// Arithmetic happens in float; these types only store.
#pragma once
#include <bit>
#include <cstdint>

namespace drivetrain {

struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

struct f16 {
  _Float16 value = 0;
  f16() = default;
  explicit f16(float x) : value(static_cast<_Float16>(x)) {}
  explicit operator float() const { return static_cast<float>(value); }
};

static_assert(sizeof(bf16) == 2 && sizeof(f16) == 2);

}  // namespace drivetrain

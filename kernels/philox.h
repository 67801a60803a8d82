// Philox4x32-10, the counter-based random generator (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011): four 32-bit words from a counter and a key, without state. For dropout and initialisation.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace drivetrain {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Multipliers and Weyl increments of the paper.
inline constexpr std::uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxM0} * counter[0], p1 = std::uint64_t{kPhiloxM1} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kPhiloxW0;
    key[1] += kPhiloxW1;
  }
  return counter;
}

// Uniform in (0, 1), never 0 and never 1, from one word; 23 bits, exact in f32.
constexpr float uniform01(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

// Two independent standard normal numbers from two words (Box-Muller).
inline std::array<float, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log((a + 0.5) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * (b + 0.5) * 0x1p-32;
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

// Four independent standard normal numbers from one draw.
inline std::array<float, 4> normal4(const PhiloxCounter& words) {
  const auto first = normal_pair(words[0], words[1]), second = normal_pair(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
}

}  // namespace drivetrain

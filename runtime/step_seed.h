// The seed of one optimizer step, for the counters of dropout.
#pragma once
#include <cstdint>

namespace drivetrain {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014) over run seed and step (from 0).
inline std::uint64_t step_seed(std::uint64_t run_seed, std::int64_t step) {
  std::uint64_t z = run_seed + (static_cast<std::uint64_t>(step) + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace drivetrain

// A seeded permutation computed point by point: an alternating Feistel network over [0, a) x [0, b), a b >= size,
// walked until it lands inside [0, size) (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
#include <cmath>

#include "kernels/error.h"
#include "runtime/data/dataset.h"

namespace drivetrain {
namespace {

constexpr int kRounds = 8;

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t permute(std::uint64_t value, std::uint64_t a, std::uint64_t b, std::uint64_t key) {
  std::uint64_t left = value / b, right = value % b;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t round_key = mix(key + static_cast<std::uint64_t>(round));
    if (round % 2 == 0) {
      left = (left + mix(round_key ^ right) % a) % a;
    } else {
      right = (right + mix(round_key ^ left) % b) % b;
    }
  }
  return left * b + right;
}

}  // namespace

SampleOrder::SampleOrder(std::int64_t size, std::uint64_t seed, bool shuffle)
    : size_(size), seed_(seed), shuffle_(shuffle) {
  if (size < 1) throw Error(ErrorKind::kLogic, "sample order of " + std::to_string(size) + " samples");
}

std::int64_t SampleOrder::at(std::int64_t epoch, std::int64_t position) const {
  if (epoch < 0 || position < 0 || position >= size_) {
    throw Error(ErrorKind::kLogic, "sample order: epoch " + std::to_string(epoch) + ", position " +
                                       std::to_string(position) + " of " + std::to_string(size_));
  }
  if (!shuffle_) return position;
  const auto size = static_cast<std::uint64_t>(size_);
  auto a = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size_)));
  while (a * a < size) ++a;
  const std::uint64_t b = (size + a - 1) / a;
  const std::uint64_t key = mix(mix(seed_) + static_cast<std::uint64_t>(epoch));
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = permute(value, a, b, key);
  } while (value >= size);
  return static_cast<std::int64_t>(value);
}

}  // namespace drivetrain

#include "launcher/comm_bench_pattern.h"

#include <algorithm>
#include <cstring>

namespace drivetrain {
namespace {

// One element as the collectives round it: sums are exact, then divided in the carry type, then rounded once.
template <class T>
T element(double sum, double divisor) {
  return static_cast<T>(static_cast<T>(sum) / static_cast<T>(divisor));
}
template <>
bf16 element<bf16>(double sum, double divisor) {
  return bf16(static_cast<float>(sum) / static_cast<float>(divisor));
}
template <>
f16 element<f16>(double sum, double divisor) {
  return f16(static_cast<float>(sum) / static_cast<float>(divisor));
}
// Wraps, unless it is averaged: that sum is wide.
template <>
std::uint8_t element<std::uint8_t>(double sum, double divisor) {
  return static_cast<std::uint8_t>(static_cast<std::int64_t>(sum) / static_cast<std::int64_t>(divisor));
}

template <class T>
void store(std::vector<std::byte>& table, std::int64_t i, double sum, double divisor) {
  const T x = element<T>(sum, divisor);
  std::memcpy(table.data() + static_cast<std::size_t>(i) * sizeof x, &x, sizeof x);
}

void put(std::vector<std::byte>& table, DType dtype, std::int64_t i, double sum, double divisor) {
  switch (dtype) {
    case DType::kF32:
      return store<float>(table, i, sum, divisor);
    case DType::kF64:
      return store<double>(table, i, sum, divisor);
    case DType::kBF16:
      return store<bf16>(table, i, sum, divisor);
    case DType::kF16:
      return store<f16>(table, i, sum, divisor);
    case DType::kI32:
      return store<std::int32_t>(table, i, sum, divisor);
    case DType::kI64:
      return store<std::int64_t>(table, i, sum, divisor);
    case DType::kU8:
      return store<std::uint8_t>(table, i, sum, divisor);
  }
}

// Calls f(bytes of x, bytes of the table) for the pieces of x that lie in one period each.
template <class F>
void for_pieces(const Tensor& x, const std::vector<std::byte>& table, std::int64_t first, const F& f) {
  const std::size_t size = size_of(x.dtype);
  std::int64_t phase = first % BenchPattern::kPeriod;
  for (std::int64_t at = 0; at < x.count();) {
    const std::int64_t piece = std::min(BenchPattern::kPeriod - phase, x.count() - at);
    f(x.data + static_cast<std::size_t>(at) * size, table.data() + static_cast<std::size_t>(phase) * size,
      static_cast<std::size_t>(piece) * size);
    at += piece;
    phase = 0;
  }
}

}  // namespace

BenchPattern::BenchPattern(BenchOp op, DType dtype, ReduceOp reduce, int ranks) : dtype_(dtype) {
  // bf16 holds integers up to 256; sums are rounded once at most, so their range only has to stay exact in f32.
  const bool adds = reduces(op) && (reduce == ReduceOp::kSum || reduce == ReduceOp::kAverage);
  range_ = adds ? 4 : 200;
  if (!reduces(op)) return;
  reduced_.resize(static_cast<std::size_t>(kPeriod) * size_of(dtype));
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    double all = value(0, i);
    for (int r = 1; r < ranks; ++r) {
      const double x = value(r, i);
      all = adds ? all + x : reduce == ReduceOp::kMax ? std::max(all, x) : std::min(all, x);
    }
    put(reduced_, dtype, i, all, reduce == ReduceOp::kAverage ? ranks : 1);
  }
}

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014) over rank and element: ranks must not differ by a mere pattern of
// bits, or their sums hardly vary.
double BenchPattern::value(int r, std::int64_t i) const {
  auto x = static_cast<std::uint64_t>(r) * static_cast<std::uint64_t>(kPeriod) + static_cast<std::uint64_t>(i) + 1;
  x *= 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x % static_cast<std::uint64_t>(range_));
}

const std::vector<std::byte>& BenchPattern::table_of(int r) const {
  std::vector<std::byte>& table = tables_[r];
  if (table.empty()) {
    table.resize(static_cast<std::size_t>(kPeriod) * size_of(dtype_));
    for (std::int64_t i = 0; i < kPeriod; ++i) put(table, dtype_, i, value(r, i), 1);
  }
  return table;
}

void BenchPattern::fill(const Tensor& x, int r) const {
  for_pieces(x, table_of(r), 0,
             [](std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
}

void BenchPattern::poison(const Tensor& x) {
  // NaN in floating point; -1 or 255 in integers, which no value reaches.
  std::fill_n(x.data, x.bytes(), std::byte{0xff});
}

std::int64_t BenchPattern::wrong(const Tensor& x, const std::vector<std::byte>& table, std::int64_t first) {
  const std::size_t size = size_of(x.dtype);
  std::int64_t count = 0;
  for_pieces(x, table, first, [&](const std::byte* have, const std::byte* want, std::size_t bytes) {
    if (std::memcmp(have, want, bytes) == 0) return;
    for (std::size_t at = 0; at < bytes; at += size) count += std::memcmp(have + at, want + at, size) != 0 ? 1 : 0;
  });
  return count;
}

std::int64_t BenchPattern::wrong_input(const Tensor& x, int r, std::int64_t first) const {
  return wrong(x, table_of(r), first);
}

std::int64_t BenchPattern::wrong_reduction(const Tensor& x, std::int64_t first) const {
  return wrong(x, reduced_, first);
}

}  // namespace drivetrain

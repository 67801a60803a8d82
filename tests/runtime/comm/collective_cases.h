// Checks of single collectives with exactly representable inputs, for any transport: each rank calls the same check.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/comm/communicator.h"

namespace drivetrain::test {

inline constexpr std::int64_t kCounts[] = {0, 1, 2, 3, 7, 31, 1024, 100003};
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAverage};

template <class T>
T as_type(std::int64_t v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}

template <class T>
double as_double(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<double>(static_cast<float>(v));
}

// Contents of rank's element i: a small multiple of `ranks`, so that sums and averages are exact in every type, 8 bits
// included. Signed types see negative values.
template <class T>
std::int64_t sample(int rank, std::int64_t i, int ranks) {
  constexpr std::int64_t kLowest = std::is_unsigned_v<T> ? 0 : -2;
  return ranks * ((i * 7 + rank * 13 + i / 5) % 5 + kLowest);
}

template <class T>
std::int64_t reduced(std::int64_t i, int ranks, ReduceOp op) {
  std::int64_t total = sample<T>(0, i, ranks);
  for (int r = 1; r < ranks; ++r) {
    const std::int64_t v = sample<T>(r, i, ranks);
    total = op == ReduceOp::kMax ? std::max(total, v) : op == ReduceOp::kMin ? std::min(total, v) : total + v;
  }
  return op == ReduceOp::kAverage ? total / ranks : total;
}

// Memory under test, ordinary or symmetric: one allocation for all checks of a rank.
struct Workspace {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t used = 0;

  template <class T>
  Tensor take(std::int64_t count) {
    const std::size_t size = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    EXPECT_LE(used + size, bytes);
    Tensor x(data + used, DTypeOf<T>::value, {count});
    used += size;
    return x;
  }
  void reset() { used = 0; }
};

// Room for two tensors of `largest_count` elements per rank in the widest type.
inline std::size_t workspace_bytes(int ranks, std::int64_t largest_count) {
  return 2 * (static_cast<std::size_t>(ranks) * static_cast<std::size_t>(largest_count) * 8 + 128);
}

// Values repeat every kPeriod elements, whatever the offset: the checks write and compare whole blocks.
inline constexpr std::int64_t kPeriod = 25;

template <class T, class Value>
void fill(const Tensor& x, const Value& value) {
  T* p = x.as<T>();
  const std::int64_t head = std::min(kPeriod, x.count());
  for (std::int64_t i = 0; i < head; ++i) p[i] = as_type<T>(value(i));
  for (std::int64_t done = head; done < x.count();) {
    const std::int64_t n = std::min(done, x.count() - done);
    std::memcpy(p + done, p, static_cast<std::size_t>(n) * sizeof(T));
    done += n;
  }
}

template <class T, class Expected>
void expect_values(const Tensor& x, const std::string& what, const Expected& expected) {
  std::array<T, 64 * kPeriod> block;
  fill<T>(Tensor(block.data(), x.dtype, {static_cast<std::int64_t>(block.size())}), expected);
  const auto step = static_cast<std::int64_t>(block.size());
  for (std::int64_t begin = 0; begin < x.count(); begin += step) {
    const std::int64_t n = std::min(step, x.count() - begin);
    const T* got = x.as<T>() + begin;
    if (std::memcmp(got, block.data(), static_cast<std::size_t>(n) * sizeof(T)) == 0) continue;
    std::int64_t i = 0;
    while (as_double(got[i]) == as_double(block[static_cast<std::size_t>(i)])) ++i;
    EXPECT_EQ(as_double(got[i]), as_double(block[static_cast<std::size_t>(i)]))
        << what << " of " << x.describe() << " at " << begin + i;
    return;
  }
}

template <class T>
void fill_samples(const Tensor& x, const Communicator& c) {
  fill<T>(x, [&](std::int64_t i) { return sample<T>(c.rank(), i, c.size()); });
}

template <class T>
void check_all_reduce(Communicator& c, Workspace& w, std::int64_t count, ReduceOp op) {
  w.reset();
  Tensor x = w.take<T>(count);
  fill_samples<T>(x, c);
  c.all_reduce(x, op).wait();
  expect_values<T>(x, "all_reduce", [&](std::int64_t i) { return reduced<T>(i, c.size(), op); });
}

template <class T>
void check_reduce(Communicator& c, Workspace& w, std::int64_t count, int root, ReduceOp op) {
  w.reset();
  Tensor x = w.take<T>(count);
  fill_samples<T>(x, c);
  c.reduce(x, root, op).wait();
  if (c.rank() == root) expect_values<T>(x, "reduce", [&](std::int64_t i) { return reduced<T>(i, c.size(), op); });
}

enum class Placement { kApart, kInPlace };  // CO-03; all_reduce and reduce are always in place

template <class T>
void check_all_gather(Communicator& c, Workspace& w, std::int64_t count, Placement placement) {
  w.reset();
  Tensor out = w.take<T>(count * c.size());
  Tensor in = placement == Placement::kInPlace ? out.flat(c.rank() * count, count) : w.take<T>(count);
  fill<T>(out, [&](std::int64_t) { return 1; });
  fill_samples<T>(in, c);
  c.all_gather(out, in).wait();
  for (int r = 0; r < c.size(); ++r)
    expect_values<T>(out.flat(r * count, count), "all_gather",
                     [&](std::int64_t i) { return sample<T>(r, i, c.size()); });
}

template <class T>
void check_reduce_scatter(Communicator& c, Workspace& w, std::int64_t count, ReduceOp op, Placement placement) {
  w.reset();
  Tensor in = w.take<T>(count * c.size());
  Tensor out = placement == Placement::kInPlace ? in.flat(c.rank() * count, count) : w.take<T>(count);
  fill_samples<T>(in, c);
  c.reduce_scatter(out, in, op).wait();
  expect_values<T>(out, "reduce_scatter",
                   [&](std::int64_t i) { return reduced<T>(c.rank() * count + i, c.size(), op); });
}

template <class T>
void check_broadcast(Communicator& c, Workspace& w, std::int64_t count, int root) {
  w.reset();
  Tensor x = w.take<T>(count);
  fill_samples<T>(x, c);
  c.broadcast(x, root).wait();
  expect_values<T>(x, "broadcast", [&](std::int64_t i) { return sample<T>(root, i, c.size()); });
}

template <class T>
void check_all_to_all(Communicator& c, Workspace& w, std::int64_t count) {
  w.reset();
  Tensor in = w.take<T>(count * c.size());
  Tensor out = w.take<T>(count * c.size());
  fill_samples<T>(in, c);
  c.all_to_all(out, in).wait();
  for (int r = 0; r < c.size(); ++r)
    expect_values<T>(out.flat(r * count, count), "all_to_all",
                     [&](std::int64_t i) { return sample<T>(r, c.rank() * count + i, c.size()); });
}

// Everybody sends to the next rank before it receives from the previous one.
template <class T>
void check_ring(Communicator& c, Workspace& w, std::int64_t count) {
  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  w.reset();
  Tensor x = w.take<T>(count), y = w.take<T>(count);
  fill_samples<T>(x, c);
  Work sent = c.send(x, next);
  c.recv(y, previous).wait();
  sent.wait();
  expect_values<T>(y, "ring", [&](std::int64_t i) { return sample<T>(previous, i, c.size()); });
}

template <class T>
void check_every_collective(Communicator& c, Workspace& w, std::int64_t count) {
  for (const ReduceOp op : kReduceOps) {
    check_all_reduce<T>(c, w, count, op);
    for (int root = 0; root < c.size(); ++root) check_reduce<T>(c, w, count, root, op);
    check_reduce_scatter<T>(c, w, count, op, Placement::kApart);
    check_reduce_scatter<T>(c, w, count, op, Placement::kInPlace);
  }
  check_all_gather<T>(c, w, count, Placement::kApart);
  check_all_gather<T>(c, w, count, Placement::kInPlace);
  for (int root = 0; root < c.size(); ++root) check_broadcast<T>(c, w, count, root);
  check_all_to_all<T>(c, w, count);
  check_ring<T>(c, w, count);
  c.barrier();
}

// Every type and count up to `largest`.
inline void check_grid(Communicator& c, Workspace& w, std::int64_t largest) {
  for (const std::int64_t count : kCounts) {
    if (count > largest) continue;
    check_every_collective<float>(c, w, count);
    check_every_collective<double>(c, w, count);
    check_every_collective<bf16>(c, w, count);
    check_every_collective<f16>(c, w, count);
    check_every_collective<std::int32_t>(c, w, count);
    check_every_collective<std::int64_t>(c, w, count);
    check_every_collective<std::uint8_t>(c, w, count);
  }
}

}  // namespace drivetrain::test

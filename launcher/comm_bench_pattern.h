// What the benchmark's buffers hold, so that every result is exact in every type and a wrong, missing or misplaced element
// shows. Rank r's element i is a small integer that repeats with a prime period, so that filling and checking run at the
// speed of memory and no shift by a power of two goes unnoticed.
#pragma once
#include <map>
#include <vector>

#include "launcher/comm_bench_request.h"

namespace drivetrain {

class BenchPattern {
 public:
  static constexpr std::int64_t kPeriod = 4099;

  // For a reducing op over `ranks` ranks, or for one that copies.
  BenchPattern(BenchOp op, DType dtype, ReduceOp reduce, int ranks);

  // x = what rank r brings.
  void fill(const Tensor& x, int r) const;
  // Bytes that no right result holds.
  static void poison(const Tensor& x);

  // Number of elements of x that differ from rank r's input, or from the reduction of all inputs, where x starts at
  // element `first` of it.
  std::int64_t wrong_input(const Tensor& x, int r, std::int64_t first) const;
  std::int64_t wrong_reduction(const Tensor& x, std::int64_t first) const;

 private:
  const std::vector<std::byte>& table_of(int r) const;
  static std::int64_t wrong(const Tensor& x, const std::vector<std::byte>& table, std::int64_t first);
  double value(int r, std::int64_t i) const;

  DType dtype_;
  std::int64_t range_;  // values are 0 .. range - 1
  std::vector<std::byte> reduced_;
  mutable std::map<int, std::vector<std::byte>> tables_;  // made when first asked for
};

}  // namespace drivetrain

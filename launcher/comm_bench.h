// Measures collectives of one communicator, and MPI's beside them: runs the cases of a request, checks every result
// and gives one row a case. Prints nothing; docs/collectives.md says what the figures mean.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "launcher/comm_bench_pattern.h"
#include "launcher/comm_bench_request.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/mpi_baseline.h"

namespace drivetrain {

struct BenchRow {
  BenchCase what;
  int ranks = 1;
  int iterations = 0;
  Spread seconds;             // of one call, on the slowest rank
  std::optional<Spread> mpi;  // the same of MPI's counterpart
  std::int64_t wrong = 0;     // elements, over all ranks and checked calls
  std::int64_t mpi_wrong = 0;
  std::optional<Spread>
      stream;  // all ranks at once read and write what = bytes of their own, where memory bounds the row
  double ratio() const { return mpi ? mpi->median / seconds.median : 0; }
  // Bytes per second that memory carried in `stream`, and the share of that speed which the row reached.
  double stream_bytes_per_s() const;
  double ceiling_share() const;
};

class CommBench {
 public:
  enum class Floor { kMeasured, kNone };
  // `memory` holds memory_of(cases) bytes. mpi: null for none. floor: whether large rows are compared with a plain stream
  // through memory. All ranks make the same calls in the same order; rows are equal on all ranks.
  CommBench(Communicator& world, const BenchRequest& request, std::span<std::byte> memory, MpiBaseline* mpi,
            Floor floor);

  BenchRow measure(const BenchCase& what);

 private:
  struct Operands {
    Tensor in, out;  // what the rank writes before a call, and where its result is; absent for none
    Tensor poisoned;
  };
  Operands operands_of(const BenchCase& what) const;
  void write_input(const BenchCase& what, const Operands& x, const BenchPattern& pattern) const;
  void call(const BenchCase& what, const Operands& x);
  void call_mpi(const BenchCase& what, const Operands& x);
  std::int64_t count_wrong(const BenchCase& what, const Operands& x, const BenchPattern& pattern) const;
  Spread slowest(std::vector<double> seconds);

  Communicator& world_;
  const BenchRequest& request_;
  std::span<std::byte> memory_;
  MpiBaseline* mpi_;
  Floor floor_;
};

}  // namespace drivetrain

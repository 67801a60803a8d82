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
  double ceiling_share = 0;  // of the memory stream's speed; 0 where it does not bound the row
  double ratio() const { return mpi ? mpi->median / seconds.median : 0; }
};

class CommBench {
 public:
  // `memory` holds memory_of(cases) bytes. mpi: null for none. All ranks make the same calls in the same order; rows are
  // equal on all ranks.
  CommBench(Communicator& world, const BenchRequest& request, std::span<std::byte> memory, MpiBaseline* mpi);

  BenchRow measure(const BenchCase& what);

  // Bytes per second that all ranks together read and write when each adds to every element of its own memory; 0 when
  // the memory is too small to tell. Large rows of measure() are compared with it from then on.
  double measure_memory_stream();

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
  double stream_ = 0;
};

}  // namespace drivetrain

// MPI's own collectives on the same buffers, the yardstick of the communication benchmarks. Not a transport.
#pragma once
#include <memory>

#include "kernels/tensor.h"

namespace drivetrain {

// Sums, over all ranks of a running MPI. bf16 is reduced by a user operation, since MPI has no such type. f32 and bf16
// only. Throws kComm when MPI does.
class MpiBaseline {
 public:
  MpiBaseline();
  ~MpiBaseline();
  MpiBaseline(const MpiBaseline&) = delete;
  MpiBaseline& operator=(const MpiBaseline&) = delete;

  void all_reduce(Tensor x);
  void all_gather(Tensor out, Tensor in);
  void reduce_scatter(Tensor out, Tensor in);
  void barrier();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drivetrain

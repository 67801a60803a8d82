// MPI's own collectives on the same tensors, as a yardstick for benchmarks: over all ranks of the world, no checks, no
// symmetric memory, Open MPI's choice of algorithm. Not for use by the product.
//
// 16-bit types have no MPI counterpart: they are reduced by user operations that compute in f32 and round at every
// combination, as MPI programs do. Average does not exist. Counts above 2^31 - 1 go in pieces or as large datatypes.
#pragma once
#include <memory>
#include <string>

#include "kernels/tensor.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

class MpiBaseline {
 public:
  // After open_world().
  MpiBaseline();
  ~MpiBaseline();
  MpiBaseline(const MpiBaseline&) = delete;
  MpiBaseline& operator=(const MpiBaseline&) = delete;

  // Shapes as in Communicator. Throw kLogic for ReduceOp::kAverage, kComm when MPI fails.
  void all_reduce(Tensor x, ReduceOp op);                   // MPI_IN_PLACE
  void all_gather(Tensor out, Tensor in);                   // MPI_IN_PLACE when in lies inside out
  void reduce_scatter(Tensor out, Tensor in, ReduceOp op);  // MPI_IN_PLACE when out is in's first share
  void broadcast(Tensor x, int root);
  void reduce(Tensor x, int root, ReduceOp op);  // MPI_IN_PLACE at the root
  void all_to_all(Tensor out, Tensor in);
  void send_recv(Tensor out, Tensor in);  // in to the next rank, out from the one before
  void barrier();

  static std::string library();  // "Open MPI v4.1.4"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drivetrain

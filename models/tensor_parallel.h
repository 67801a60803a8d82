// How activations enter and leave a tensor-parallel region. Outside it the residual stream is either replicated over
// the tensor ranks or, with sequence parallelism, each rank holds its slice of the rows. The two moves below are each
// other's gradients: forward gathers on the way in and reduces on the way out, backward the other way round.
#pragma once
#include <cstdint>

#include "kernels/arena.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

class TensorParallel {
 public:
  enum class Residual { kReplicated, kSharded };
  TensorParallel(Communicator& comm, Residual residual) : comm_(&comm), residual_(residual) {}

  int size() const { return comm_->size(); }
  int rank() const { return comm_->rank(); }
  Communicator& comm() const { return *comm_; }
  bool sharded() const { return residual_ == Residual::kSharded && size() > 1; }
  // Rows of the residual stream on this rank, out of `rows` in the batch. Throws kLogic when they do not divide.
  std::int64_t local_rows(std::int64_t rows) const;
  // This rank's rows of a tensor that covers the whole batch; all of it when replicated.
  Tensor local(Tensor full) const;

  // This rank's rows of `full` are valid; afterwards all rows are.
  void gather(Tensor full) const;
  // A whole-batch copy of `local`, taken from the arena; `local` itself when there is nothing to gather.
  Tensor gathered(Tensor local, Arena& arena) const;
  // Sums `partial` over the tensor ranks in place; the returned view holds this rank's rows of the sum once the work
  // has been waited for.
  struct Reduction {
    Tensor local;
    Work work;
  };
  [[nodiscard]] Reduction start_reduce(Tensor partial) const;
  Tensor reduce(Tensor partial) const;

 private:
  Communicator* comm_;
  Residual residual_;
};

}  // namespace drivetrain

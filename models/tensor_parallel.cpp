#include "models/tensor_parallel.h"

#include <string>

namespace drivetrain {

std::int64_t TensorParallel::local_rows(std::int64_t rows) const {
  if (!sharded()) return rows;
  if (rows % size() != 0)
    throw Error(ErrorKind::kLogic, "sequence parallelism cannot deal " + std::to_string(rows) + " tokens to " +
                                       std::to_string(size()) + " tensor ranks");
  return rows / size();
}

Tensor TensorParallel::local(Tensor full) const {
  if (!sharded()) return full;
  const std::int64_t m = local_rows(full.dim(0));
  return full.rows(rank() * m, (rank() + 1) * m);
}

void TensorParallel::gather(Tensor full) const {
  if (sharded()) comm_->all_gather(full, local(full)).wait();
}

Tensor TensorParallel::gathered(Tensor local, Arena& arena) const {
  if (!sharded()) return local;
  Tensor full = arena.take(local.dtype, {local.dim(0) * size(), local.dim(1)});
  comm_->all_gather(full, local).wait();
  return full;
}

TensorParallel::Reduction TensorParallel::start_reduce(Tensor partial) const {
  if (size() == 1) return {partial, Work()};
  if (!sharded()) return {partial, comm_->all_reduce(partial, ReduceOp::kSum)};
  Tensor mine = local(partial);
  return {mine, comm_->reduce_scatter(mine, partial, ReduceOp::kSum)};
}

Tensor TensorParallel::reduce(Tensor partial) const {
  Reduction r = start_reduce(partial);
  r.work.wait();
  return r.local;
}

}  // namespace drivetrain

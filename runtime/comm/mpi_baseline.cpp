#include "runtime/comm/mpi_baseline.h"

#include <mpi.h>

#include "runtime/comm/mpi_check.h"

namespace drivetrain {
namespace {

extern "C" void add_bf16(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* x = static_cast<const bf16*>(in);
  auto* y = static_cast<bf16*>(in_out);
  for (int i = 0; i < *count; ++i) y[i] = bf16(static_cast<float>(x[i]) + static_cast<float>(y[i]));
}

}  // namespace

struct MpiBaseline::Impl {
  MPI_Datatype bf16_type = MPI_DATATYPE_NULL;
  MPI_Op bf16_sum = MPI_OP_NULL;

  MPI_Datatype type(const Tensor& x) const {
    if (x.dtype == DType::kF32) return MPI_FLOAT;
    if (x.dtype == DType::kBF16) return bf16_type;
    throw Error(ErrorKind::kLogic, "the MPI yardstick knows f32 and bf16, not " + x.describe());
  }
  MPI_Op op(const Tensor& x) const { return x.dtype == DType::kF32 ? MPI_SUM : bf16_sum; }
};

MpiBaseline::MpiBaseline() : impl_(std::make_unique<Impl>()) {
  check_mpi(MPI_Type_contiguous(2, MPI_BYTE, &impl_->bf16_type), "MPI_Type_contiguous");
  check_mpi(MPI_Type_commit(&impl_->bf16_type), "MPI_Type_commit");
  check_mpi(MPI_Op_create(add_bf16, 1, &impl_->bf16_sum), "MPI_Op_create");
}

MpiBaseline::~MpiBaseline() {
  MPI_Op_free(&impl_->bf16_sum);
  MPI_Type_free(&impl_->bf16_type);
}

void MpiBaseline::all_reduce(Tensor x) {
  check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, x.data, static_cast<int>(x.count()), impl_->type(x), impl_->op(x), MPI_COMM_WORLD),
      "MPI_Allreduce");
}

void MpiBaseline::all_gather(Tensor out, Tensor in) {
  const int count = static_cast<int>(in.count());
  check_mpi(MPI_Allgather(in.data, count, impl_->type(in), out.data, count, impl_->type(out), MPI_COMM_WORLD),
            "MPI_Allgather");
}

void MpiBaseline::reduce_scatter(Tensor out, Tensor in) {
  check_mpi(MPI_Reduce_scatter_block(in.data, out.data, static_cast<int>(out.count()), impl_->type(in), impl_->op(in),
                                     MPI_COMM_WORLD),
            "MPI_Reduce_scatter_block");
}

void MpiBaseline::barrier() {
  check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

}  // namespace drivetrain

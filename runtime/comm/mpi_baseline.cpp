#include "runtime/comm/mpi_baseline.h"

#include <mpi.h>

#include <algorithm>
#include <climits>

#include "runtime/comm/mpi_check.h"

namespace drivetrain {
namespace {

template <class T, class F>
void combine(const void* in, void* in_out, int count, const F& f) {
  const auto* x = static_cast<const T*>(in);
  auto* y = static_cast<T*>(in_out);
  for (int i = 0; i < count; ++i) y[i] = T(f(static_cast<float>(x[i]), static_cast<float>(y[i])));
}

template <class T>
void add(void* in, void* in_out, int* count, MPI_Datatype*) {
  combine<T>(in, in_out, *count, [](float a, float b) { return a + b; });
}
template <class T>
void take_larger(void* in, void* in_out, int* count, MPI_Datatype*) {
  combine<T>(in, in_out, *count, [](float a, float b) { return std::max(a, b); });
}
template <class T>
void take_smaller(void* in, void* in_out, int* count, MPI_Datatype*) {
  combine<T>(in, in_out, *count, [](float a, float b) { return std::min(a, b); });
}

// Calls f(piece) for pieces of x that MPI can count.
template <class F>
void for_pieces(const Tensor& x, const F& f) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 30;
  for (std::int64_t at = 0; at < x.count(); at += kPiece) f(x.flat(at, std::min(kPiece, x.count() - at)));
}

int narrow(std::int64_t count) {
  return static_cast<int>(count);
}

// `count` elements of `unit` as one datatype, for moves of more than MPI can count.
class LargeType {
 public:
  LargeType(MPI_Datatype unit, std::size_t unit_bytes, std::int64_t count) {
    constexpr std::int64_t kBlock = std::int64_t{1} << 30;
    MPI_Datatype block = MPI_DATATYPE_NULL, blocks = MPI_DATATYPE_NULL, rest = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(narrow(kBlock), unit, &block), "MPI_Type_contiguous");
    check_mpi(MPI_Type_contiguous(narrow(count / kBlock), block, &blocks), "MPI_Type_contiguous");
    check_mpi(MPI_Type_contiguous(narrow(count % kBlock), unit, &rest), "MPI_Type_contiguous");
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0,
                                static_cast<MPI_Aint>(count / kBlock * kBlock) * static_cast<MPI_Aint>(unit_bytes)};
    const MPI_Datatype parts[2] = {blocks, rest};
    check_mpi(MPI_Type_create_struct(2, lengths, places, parts, &type_), "MPI_Type_create_struct");
    check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    for (MPI_Datatype* one : {&block, &blocks, &rest}) MPI_Type_free(one);
  }
  ~LargeType() { MPI_Type_free(&type_); }
  LargeType(const LargeType&) = delete;
  LargeType& operator=(const LargeType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Calls move(count, type) for `count` elements.
template <class F>
void with_countable(MPI_Datatype unit, DType dtype, std::int64_t count, const F& move) {
  if (count <= INT_MAX) return move(narrow(count), unit);
  const LargeType large(unit, size_of(dtype), count);
  move(1, large.get());
}

bool lies_inside(const Tensor& part, const Tensor& whole) {
  return part.data >= whole.data && part.data < whole.data + whole.bytes();
}

}  // namespace

struct MpiBaseline::Impl {
  // By 16-bit type (bf16, f16) and ReduceOp (sum, max, min).
  MPI_Datatype half_type = MPI_DATATYPE_NULL;
  MPI_Op half_ops[2][3];
  int rank = 0, size = 1;

  static MPI_Datatype type_of(DType dtype, MPI_Datatype half) {
    switch (dtype) {
      case DType::kF32:
        return MPI_FLOAT;
      case DType::kF64:
        return MPI_DOUBLE;
      case DType::kI32:
        return MPI_INT32_T;
      case DType::kI64:
        return MPI_INT64_T;
      case DType::kU8:
        return MPI_UINT8_T;
      default:
        return half;
    }
  }
  MPI_Datatype type(const Tensor& x) const { return type_of(x.dtype, half_type); }

  MPI_Op op(const Tensor& x, ReduceOp reduce) const {
    if (reduce == ReduceOp::kAverage) throw Error(ErrorKind::kLogic, "MPI has no average");
    const auto which = static_cast<std::size_t>(reduce);
    if (x.dtype == DType::kBF16) return half_ops[0][which];
    if (x.dtype == DType::kF16) return half_ops[1][which];
    return reduce == ReduceOp::kSum ? MPI_SUM : reduce == ReduceOp::kMax ? MPI_MAX : MPI_MIN;
  }
};

MpiBaseline::MpiBaseline() : impl_(std::make_unique<Impl>()) {
  static_assert(static_cast<int>(ReduceOp::kSum) == 0 && static_cast<int>(ReduceOp::kMin) == 2);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &impl_->rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &impl_->size), "MPI_Comm_size");
  check_mpi(MPI_Type_contiguous(2, MPI_BYTE, &impl_->half_type), "MPI_Type_contiguous");
  check_mpi(MPI_Type_commit(&impl_->half_type), "MPI_Type_commit");
  MPI_User_function* const functions[2][3] = {{add<bf16>, take_larger<bf16>, take_smaller<bf16>},
                                              {add<f16>, take_larger<f16>, take_smaller<f16>}};
  for (int t = 0; t < 2; ++t)
    for (int o = 0; o < 3; ++o) check_mpi(MPI_Op_create(functions[t][o], 1, &impl_->half_ops[t][o]), "MPI_Op_create");
}

MpiBaseline::~MpiBaseline() {
  for (auto& ops : impl_->half_ops)
    for (MPI_Op& op : ops) MPI_Op_free(&op);
  MPI_Type_free(&impl_->half_type);
}

void MpiBaseline::all_reduce(Tensor x, ReduceOp op) {
  for_pieces(x, [&](const Tensor& piece) {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, piece.data, narrow(piece.count()), impl_->type(x), impl_->op(x, op),
                            MPI_COMM_WORLD),
              "MPI_Allreduce");
  });
}

void MpiBaseline::all_gather(Tensor out, Tensor in) {
  const void* source = lies_inside(in, out) ? MPI_IN_PLACE : in.data;
  with_countable(impl_->type(in), in.dtype, in.count(), [&](int count, MPI_Datatype type) {
    check_mpi(MPI_Allgather(source, count, type, out.data, count, type, MPI_COMM_WORLD), "MPI_Allgather");
  });
}

void MpiBaseline::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  const bool in_place = out.data == in.data;
  if (out.count() <= INT_MAX) {
    check_mpi(MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in.data, in_place ? in.data : out.data,
                                       narrow(out.count()), impl_->type(in), impl_->op(in, op), MPI_COMM_WORLD),
              "MPI_Reduce_scatter_block");
    return;
  }
  // A reduction cannot take a large datatype: share by share to its rank.
  for (int r = 0; r < impl_->size; ++r) {
    reduce(in.flat(r * out.count(), out.count()), r, op);
  }
  const Tensor mine = in.flat(impl_->rank * out.count(), out.count());
  std::copy_n(mine.data, mine.bytes(), out.data);
}

void MpiBaseline::broadcast(Tensor x, int root) {
  for_pieces(x, [&](const Tensor& piece) {
    check_mpi(MPI_Bcast(piece.data, narrow(piece.count()), impl_->type(x), root, MPI_COMM_WORLD), "MPI_Bcast");
  });
}

void MpiBaseline::reduce(Tensor x, int root, ReduceOp op) {
  const bool here = impl_->rank == root;
  for_pieces(x, [&](const Tensor& piece) {
    check_mpi(MPI_Reduce(here ? MPI_IN_PLACE : piece.data, here ? piece.data : nullptr, narrow(piece.count()),
                         impl_->type(x), impl_->op(x, op), root, MPI_COMM_WORLD),
              "MPI_Reduce");
  });
}

void MpiBaseline::all_to_all(Tensor out, Tensor in) {
  with_countable(impl_->type(in), in.dtype, in.count() / impl_->size, [&](int count, MPI_Datatype type) {
    check_mpi(MPI_Alltoall(in.data, count, type, out.data, count, type, MPI_COMM_WORLD), "MPI_Alltoall");
  });
}

void MpiBaseline::send_recv(Tensor out, Tensor in) {
  const int next = (impl_->rank + 1) % impl_->size, before = (impl_->rank + impl_->size - 1) % impl_->size;
  with_countable(impl_->type(in), in.dtype, in.count(), [&](int count, MPI_Datatype type) {
    check_mpi(MPI_Sendrecv(in.data, count, type, next, 0, out.data, count, type, before, 0, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
  });
}

void MpiBaseline::barrier() {
  check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

std::string MpiBaseline::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace drivetrain

#include "runtime/comm/arithmetic.h"

#include "kernels/cpu/copy.h"
#include "kernels/cpu/reduce.h"

namespace drivetrain {
namespace {

cpu::Reduction to_reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return cpu::Reduction::kMax;
    case ReduceOp::kMin:
      return cpu::Reduction::kMin;
    case ReduceOp::kAverage:
      return cpu::Reduction::kAverage;
    default:
      return cpu::Reduction::kSum;
  }
}

template <class Out, class In>
void convert_elements(const Tensor& out, const Tensor& in) {
  const In* source = in.as<In>();
  Out* target = out.as<Out>();
  for (std::int64_t i = 0; i < in.count(); ++i) target[i] = static_cast<Out>(source[i]);
}

template <class T>
void divide_elements(const Tensor& x, int n) {
  T* p = x.as<T>();
  for (std::int64_t i = 0; i < x.count(); ++i) p[i] /= static_cast<T>(n);
}

}  // namespace

DType carry_type(DType dtype, ReduceOp op) {
  if (dtype == DType::kBF16 || dtype == DType::kF16) return DType::kF32;
  if (op == ReduceOp::kAverage && (dtype == DType::kI32 || dtype == DType::kU8)) return DType::kI64;
  return dtype;
}

void convert(const Tensor& out, const Tensor& in) {
  const auto from_to = [&](DType from, DType to) { return in.dtype == from && out.dtype == to; };
  if (in.dtype == out.dtype) return copy_bytes(out.data, in.data, in.bytes());
  const auto is_float = [](DType t) { return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16; };
  if (is_float(in.dtype) && is_float(out.dtype)) return cpu::copy(out, in, 1);
  if (from_to(DType::kI32, DType::kI64)) return convert_elements<std::int64_t, std::int32_t>(out, in);
  if (from_to(DType::kI64, DType::kI32)) return convert_elements<std::int32_t, std::int64_t>(out, in);
  if (from_to(DType::kU8, DType::kI64)) return convert_elements<std::int64_t, std::uint8_t>(out, in);
  if (from_to(DType::kI64, DType::kU8)) return convert_elements<std::uint8_t, std::int64_t>(out, in);
  throw Error(ErrorKind::kLogic, "no conversion from " + in.describe() + " to " + out.describe());
}

void divide(const Tensor& x, int n) {
  if (x.dtype == DType::kF32) return divide_elements<float>(x, n);
  if (x.dtype == DType::kF64) return divide_elements<double>(x, n);
  if (x.dtype == DType::kI64) return divide_elements<std::int64_t>(x, n);
  throw Error(ErrorKind::kLogic, "averages are not carried in " + x.describe());
}

void reduce_into(std::span<std::byte* const> targets, std::span<const std::byte* const> sources, DType dtype,
                 ReduceOp op, std::int64_t count, int threads) {
  if (count > 0) cpu::reduce(targets, sources, dtype, to_reduction(op), count, threads);
}

}  // namespace drivetrain

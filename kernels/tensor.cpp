#include "kernels/tensor.h"

#include <algorithm>

namespace drivetrain {

const char* name(DType t) {
  switch (t) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

Tensor::Tensor(void* p, DType t, std::initializer_list<std::int64_t> shape)
    : data(static_cast<std::byte*>(p)), dtype(t), ndim(static_cast<std::uint8_t>(shape.size())) {
  if (shape.size() > kMaxDims) throw Error(ErrorKind::kLogic, "a tensor has at most 4 dimensions");
  std::copy(shape.begin(), shape.end(), dims.begin());
}

std::int64_t Tensor::count() const {
  if (ndim == 0) return 0;
  std::int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= dims[static_cast<std::size_t>(i)];
  return n;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (ndim == 0 || begin < 0 || end < begin || end > dims[0])
    throw Error(ErrorKind::kLogic,
                "rows [" + std::to_string(begin) + ", " + std::to_string(end) + ") are outside " + describe());
  Tensor out = *this;
  const std::int64_t row = dims[0] == 0 ? 0 : count() / dims[0];
  out.data = data + static_cast<std::size_t>(begin * row) * size_of(dtype);
  out.dims[0] = end - begin;
  return out;
}

Tensor Tensor::flat(std::int64_t begin, std::int64_t n) const {
  if (begin < 0 || n < 0 || begin + n > count())
    throw Error(ErrorKind::kLogic, "elements [" + std::to_string(begin) + ", " + std::to_string(begin + n) +
                                       ") are outside " + describe());
  return Tensor(data + static_cast<std::size_t>(begin) * size_of(dtype), dtype, {n});
}

Tensor Tensor::reshape(std::initializer_list<std::int64_t> shape) const {
  Tensor out(data, dtype, shape);
  if (out.count() != count()) throw Error(ErrorKind::kLogic, "cannot view " + describe() + " as " + out.describe());
  return out;
}

std::string Tensor::describe() const {
  std::string s = name(dtype);
  s += '[';
  for (int i = 0; i < ndim; ++i) s += (i ? ", " : "") + std::to_string(dims[static_cast<std::size_t>(i)]);
  return s + ']';
}

void Tensor::throw_dtype(DType wanted) const {
  throw Error(ErrorKind::kLogic, describe() + " was used as " + name(wanted));
}

}  // namespace drivetrain

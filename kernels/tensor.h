// A typed, shaped, contiguous (row-major) view of device memory. It owns nothing and never allocates.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "kernels/error.h"
#include "kernels/float16.h"

namespace drivetrain {

enum class DType : std::uint8_t { kF32, kF64, kBF16, kF16, kI32, kI64, kU8 };

constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
    default:
      return 4;
  }
}
const char* name(DType t);  // "f32", "bf16", ...

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};

struct Tensor {
  static constexpr int kMaxDims = 4;

  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::uint8_t ndim = 0;
  std::array<std::int64_t, kMaxDims> dims{};

  Tensor() = default;
  Tensor(void* p, DType t, std::initializer_list<std::int64_t> shape);

  // An absent optional argument (no bias, no dropout mask) is a default-constructed Tensor.
  bool present() const { return ndim != 0; }
  // Size of dimension i; negative i counts from the end.
  std::int64_t dim(int i) const { return dims[static_cast<std::size_t>(i < 0 ? ndim + i : i)]; }
  std::int64_t count() const;  // elements; 0 if absent
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype); }

  // View of rows [begin, end) of dimension 0. Throws kLogic outside the bounds.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // View of elements [begin, begin + n) of the flattened tensor, one-dimensional.
  Tensor flat(std::int64_t begin, std::int64_t n) const;
  // Same memory, other shape with the same count.
  Tensor reshape(std::initializer_list<std::int64_t> shape) const;
  // (rows, cols): all leading dimensions folded into one.
  Tensor matrix() const { return reshape({count() == 0 ? 0 : count() / dim(-1), dim(-1)}); }

  // Typed pointer; throws kLogic when T is not the tensor's dtype.
  template <class T>
  T* as() const {
    if (dtype != DTypeOf<T>::value) throw_dtype(DTypeOf<T>::value);
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<std::size_t>(count())};
  }
  std::string describe() const;  // "bf16[4, 128]"

 private:
  [[noreturn]] void throw_dtype(DType wanted) const;
};

}  // namespace drivetrain

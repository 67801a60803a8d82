#include "runtime/checkpoint/float_convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/error.h"
#include "kernels/float16.h"

namespace drivetrain {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and so must we be");

bool fits_range(double value, float converted) {
  return std::isfinite(converted) || !std::isfinite(value);
}

// An integer is exact in float when its significant bits, from the first 1 to the last, are at most 24.
bool fits_exactly(std::int64_t value) {
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  return magnitude == 0 || std::bit_width(magnitude) - std::countr_zero(magnitude) <= 24;
}

template <class T>
std::optional<std::size_t> widen(std::span<float> out, const std::byte* bytes) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
    if constexpr (std::is_same_v<T, double>) {
      if (!fits_range(value, out[i])) return i;
    } else if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) {
      if (!fits_exactly(static_cast<std::int64_t>(value))) return i;
    }
  }
  return std::nullopt;
}

template <class T>
std::optional<std::size_t> narrow(std::byte* out, std::span<const float> values) {
  std::optional<std::size_t> bad;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
    if (std::isinf(static_cast<float>(value)) && !std::isinf(values[i]) && !bad) bad = i;
  }
  return bad;
}

}  // namespace

std::optional<std::size_t> to_floats(std::span<float> out, FileDType dtype, std::span<const std::byte> bytes) {
  if (bytes.size() != out.size() * size_of(dtype))
    throw Error(ErrorKind::kLogic, "to_floats: " + std::to_string(bytes.size()) + " bytes for " +
                                       std::to_string(out.size()) + " elements");
  switch (dtype) {
    case FileDType::kF32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
      return std::nullopt;
    case FileDType::kBF16:
      return widen<bf16>(out, bytes.data());
    case FileDType::kF16:
      return widen<f16>(out, bytes.data());
    case FileDType::kF64:
      return widen<double>(out, bytes.data());
    case FileDType::kI64:
      return widen<std::int64_t>(out, bytes.data());
    case FileDType::kI32:
      return widen<std::int32_t>(out, bytes.data());
    case FileDType::kI16:
      return widen<std::int16_t>(out, bytes.data());
    case FileDType::kI8:
      return widen<std::int8_t>(out, bytes.data());
    case FileDType::kU8:
      return widen<std::uint8_t>(out, bytes.data());
    case FileDType::kBool:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes[i] == std::byte{0} ? 0.0f : 1.0f;
      return std::nullopt;
  }
  throw Error(ErrorKind::kLogic, "unknown file dtype");
}

std::optional<std::size_t> from_floats(std::span<std::byte> out, FileDType dtype, std::span<const float> values) {
  if (out.size() != values.size() * size_of(dtype))
    throw Error(ErrorKind::kLogic, "from_floats: " + std::to_string(out.size()) + " bytes for " +
                                       std::to_string(values.size()) + " elements");
  switch (dtype) {
    case FileDType::kF32:
      if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
      return std::nullopt;
    case FileDType::kBF16:
      return narrow<bf16>(out.data(), values);
    case FileDType::kF16:
      return narrow<f16>(out.data(), values);
    default:
      throw Error(ErrorKind::kConfig, "weights are written as f32, bf16 or f16 only");
  }
}

}  // namespace drivetrain

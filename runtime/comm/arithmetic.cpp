#include "runtime/comm/arithmetic.h"

#include <algorithm>
#include <type_traits>

namespace drivetrain {
namespace {

template <class T, class Acc>
void fold(std::span<std::byte* const> targets, std::span<const std::byte* const> sources, ReduceOp op,
          std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto total = static_cast<Acc>(reinterpret_cast<const T*>(sources[0])[i]);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const auto v = static_cast<Acc>(reinterpret_cast<const T*>(sources[s])[i]);
      if (op == ReduceOp::kMax)
        total = std::max(total, v);
      else if (op == ReduceOp::kMin)
        total = std::min(total, v);
      else
        total += v;
    }
    if (op == ReduceOp::kAverage) total /= static_cast<Acc>(sources.size());
    for (std::byte* target : targets) reinterpret_cast<T*>(target)[i] = static_cast<T>(total);
  }
}

}  // namespace

void reduce_into(std::span<std::byte* const> targets, std::span<const std::byte* const> sources, DType dtype,
                 ReduceOp op, std::int64_t count) {
  if (count == 0) return;
  switch (dtype) {
    case DType::kF32:
      return fold<float, float>(targets, sources, op, count);
    case DType::kF64:
      return fold<double, double>(targets, sources, op, count);
    case DType::kBF16:
      return fold<bf16, float>(targets, sources, op, count);
    case DType::kF16:
      return fold<f16, float>(targets, sources, op, count);
    case DType::kI32:
      return fold<std::int32_t, std::int64_t>(targets, sources, op, count);
    case DType::kI64:
      return fold<std::int64_t, std::int64_t>(targets, sources, op, count);
    case DType::kU8:
      return fold<std::uint8_t, std::int64_t>(targets, sources, op, count);
  }
}

}  // namespace drivetrain

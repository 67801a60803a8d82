#include "kernels/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

template <class To, class From>
HWY_INLINE void convert(To* y, const From* x, std::int64_t n) {
  const F32 d;
  for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR { store(d, load(d, x + i, lanes), y + i, lanes); });
}

// Elements [begin, end) of y = x, between two different compute dtypes.
void convert_range(Tensor y, Tensor x, std::int64_t begin, std::int64_t end) {
  with_compute_type(y.dtype, [&](auto to) HWY_ATTR {
    with_compute_type(x.dtype, [&](auto from) HWY_ATTR {
      convert(row<decltype(to)>(y, begin, 1), row<decltype(from)>(x, begin, 1), end - begin);
    });
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(convert_range);

namespace {

bool is_compute(DType t) {
  return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16;
}

template <class To, class From>
void convert_f64(Tensor y, Tensor x) {
  const auto out = y.span<To>();
  const auto in = x.span<From>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_same_v<To, double>) {
      out[i] = static_cast<double>(static_cast<float>(in[i]));
    } else {
      out[i] = static_cast<To>(static_cast<float>(in[i]));
    }
  }
}

// One of the two is f64, the other one a compute dtype. Rare (statistics), hence plain loops.
void convert_wide(Tensor y, Tensor x) {
  if (y.dtype == DType::kF32) return convert_f64<float, double>(y, x);
  if (y.dtype == DType::kBF16) return convert_f64<bf16, double>(y, x);
  if (y.dtype == DType::kF16) return convert_f64<f16, double>(y, x);
  if (x.dtype == DType::kF32) return convert_f64<double, float>(y, x);
  if (x.dtype == DType::kBF16) return convert_f64<double, bf16>(y, x);
  convert_f64<double, f16>(y, x);
}

}  // namespace

void copy(Tensor y, Tensor x, int threads) {
  const OpCheck check("copy");
  check.that(x.present(), "x is absent");
  check.flat("y", y, y.dtype, x.count());
  const auto grain = [&](std::int64_t n, std::int64_t least) { return std::max(least, (n + threads - 1) / threads); };
  if (y.dtype == x.dtype) {
    if (y.data == x.data) return;
    const auto bytes = static_cast<std::int64_t>(x.bytes());
    parallel_for(bytes, grain(bytes, grain_of(1) * 4), [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(y.data + begin, x.data + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  const bool wide =
      (is_compute(x.dtype) && y.dtype == DType::kF64) || (x.dtype == DType::kF64 && is_compute(y.dtype));
  if (wide) return convert_wide(y, x);
  check.compute("x", x);
  check.compute("y", y);
  parallel_for(x.count(), grain(x.count(), grain_of(1)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(convert_range)(y, x, begin, end);
  });
}

}  // namespace drivetrain::cpu
#endif

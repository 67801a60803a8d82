#include "kernels/cpu/elementwise.h"

#include <cstring>

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
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

void add_range(Tensor y, Tensor a, Tensor b, std::int64_t begin, std::int64_t end) {
  const F32 d;
  with_compute_type(y.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    T* out = row<T>(y, begin, 1);
    const T *left = row<T>(a, begin, 1), *right = row<T>(b, begin, 1);
    for_vectors(end - begin, [&](std::int64_t i, auto lanes) HWY_ATTR {
      store(d, hn::Add(load(d, left + i, lanes), load(d, right + i, lanes)), out + i, lanes);
    });
  });
}

// sums[c] += x[m][c] for all rows, four at a time.
template <class T>
HWY_INLINE void add_columns(float* sums, const T* x, std::int64_t rows, std::int64_t stride, std::int64_t cols) {
  const F32 d;
  std::int64_t m = 0;
  for (; m + 4 <= rows; m += 4) {
    const T *r0 = x + m * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
      const VF low = hn::Add(load(d, r0 + i, lanes), load(d, r1 + i, lanes));
      const VF high = hn::Add(load(d, r2 + i, lanes), load(d, r3 + i, lanes));
      store(d, hn::Add(load(d, sums + i, lanes), hn::Add(low, high)), sums + i, lanes);
    });
  }
  for (; m < rows; ++m) {
    for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
      store(d, hn::Add(load(d, sums + i, lanes), load(d, x + m * stride + i, lanes)), sums + i, lanes);
    });
  }
}

// Columns [begin, end) of db (+)= column sums of dy.
void bias_grad_columns(Tensor db, Tensor dy, Write write, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kTile = 512;
  const std::int64_t cols = db.count(), rows = cols == 0 ? 0 : dy.count() / cols;
  with_compute_type(dy.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t c = begin; c < end; c += kTile) {
      const std::int64_t n = std::min(kTile, end - c);
      alignas(64) float sums[kTile] = {};
      add_columns(sums, row<T>(dy, c, 1), rows, cols, n);
      float* out = row<float>(db, c, 1);
      for (std::int64_t i = 0; i < n; ++i) out[i] = write == Write::kOverwrite ? sums[i] : out[i] + sums[i];
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(convert_range);
HWY_EXPORT(add_range);
HWY_EXPORT(bias_grad_columns);

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

void zero(Tensor x) {
  OpCheck("zero").that(x.present(), "x is absent");
  parallel_for(static_cast<std::int64_t>(x.bytes()), grain_of(1) * 4, [&](std::int64_t begin, std::int64_t end) {
    std::memset(x.data + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

void copy(Tensor y, Tensor x) {
  const OpCheck check("copy");
  check.that(x.present(), "x is absent");
  check.flat("y", y, y.dtype, x.count());
  if (y.dtype == x.dtype) {
    if (y.data == x.data) return;
    parallel_for(static_cast<std::int64_t>(x.bytes()), grain_of(1) * 4, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(y.data + begin, x.data + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  const bool wide =
      (is_compute(x.dtype) && y.dtype == DType::kF64) || (x.dtype == DType::kF64 && is_compute(y.dtype));
  if (wide) return convert_wide(y, x);
  check.compute("x", x);
  check.compute("y", y);
  parallel_for(x.count(), grain_of(1), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(convert_range)(y, x, begin, end);
  });
}

void add(Tensor y, Tensor a, Tensor b) {
  const OpCheck check("add");
  check.compute("y", y);
  check.flat("a", a, y.dtype, y.count());
  check.flat("b", b, y.dtype, y.count());
  parallel_for(y.count(), grain_of(1), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_range)(y, a, b, begin, end);
  });
}

void bias_grad(Tensor db, Tensor dy, Write write) {
  const OpCheck check("bias_grad");
  check.compute("dy", dy);
  check.flat("db", db, DType::kF32, dy.dim(-1));
  constexpr std::int64_t kUnit = 64;
  const std::int64_t cols = db.count();
  parallel_for((cols + kUnit - 1) / kUnit, grain_of(kUnit * rows_of(dy)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(bias_grad_columns)(db, dy, write, begin * kUnit, std::min(cols, end * kUnit));
  });
}

}  // namespace drivetrain::cpu
#endif

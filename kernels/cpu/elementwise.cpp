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

HWY_EXPORT(add_range);
HWY_EXPORT(bias_grad_columns);

void zero(Tensor x) {
  OpCheck("zero").that(x.present(), "x is absent");
  parallel_for(static_cast<std::int64_t>(x.bytes()), grain_of(1) * 4, [&](std::int64_t begin, std::int64_t end) {
    std::memset(x.data + begin, 0, static_cast<std::size_t>(end - begin));
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

#include "kernels/cpu/norm.h"

#include <cmath>

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// The row that is to be normalised: x, or the sum after writing it.
template <class T>
HWY_INLINE const T* residual_row(Tensor sum, Tensor x, Tensor delta, std::int64_t m, std::int64_t cols) {
  const F32 d;
  if (!delta.present()) return row<T>(x, m, cols);
  T* out = row<T>(sum, m, cols);
  const T *a = row<T>(x, m, cols), *b = row<T>(delta, m, cols);
  for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
    store(d, hn::Add(load(d, a + i, lanes), load(d, b + i, lanes)), out + i, lanes);
  });
  return out;
}

template <class T>
HWY_INLINE float mean_of(const T* x, std::int64_t n) {
  const F32 d;
  VF sum = hn::Zero(d);
  for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR { sum = hn::Add(sum, load(d, x + i, lanes)); });
  return sum_lanes(d, sum) / static_cast<float>(n);
}

// mean((x - center)^2)
template <class T>
HWY_INLINE float spread_of(const T* x, float center, std::int64_t n) {
  const F32 d;
  VF sum = hn::Zero(d);
  for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR {
    const VF c = keep(d, hn::Sub(load(d, x + i, lanes), hn::Set(d, center)), lanes);
    sum = hn::MulAdd(c, c, sum);
  });
  return sum_lanes(d, sum) / static_cast<float>(n);
}

void rms_norm_rows(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps,
                   std::int64_t begin, std::int64_t end) {
  const F32 d;
  const std::int64_t cols = w.count();
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    const T* weight = row<T>(w, 0, cols);
    for (std::int64_t m = begin; m < end; ++m) {
      const T* in = residual_row<T>(sum, x, delta, m, cols);
      const float inv = 1.0f / std::sqrt(spread_of(in, 0.0f, cols) + eps);
      *row<float>(inv_rms, m, 1) = inv;
      T* out = row<T>(y, m, cols);
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF normal = round_to<T>(d, hn::Mul(load(d, in + i, lanes), hn::Set(d, inv)));
        store(d, hn::Mul(normal, load(d, weight + i, lanes)), out + i, lanes);
      });
    }
  });
}

void layer_norm_rows(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w, Tensor b,
                     float eps, std::int64_t begin, std::int64_t end) {
  const F32 d;
  const std::int64_t cols = w.count();
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    const T *weight = row<T>(w, 0, cols), *bias = row<T>(b, 0, cols);
    for (std::int64_t m = begin; m < end; ++m) {
      const T* in = residual_row<T>(sum, x, delta, m, cols);
      const float center = mean_of(in, cols), inv = 1.0f / std::sqrt(spread_of(in, center, cols) + eps);
      *row<float>(mean, m, 1) = center;
      *row<float>(inv_std, m, 1) = inv;
      T* out = row<T>(y, m, cols);
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF normal = hn::Mul(hn::Sub(load(d, in + i, lanes), hn::Set(d, center)), hn::Set(d, inv));
        store(d, hn::MulAdd(normal, load(d, weight + i, lanes), load(d, bias + i, lanes)), out + i, lanes);
      });
    }
  });
}

// Rows [begin, end) of dx += inv (g - mean(g) - n mean(g n)) with g = dy w and n the normalised x. Without `mean`
// (RMSNorm) there is no mean(g) term.
void norm_grad_rows(Tensor dx, Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor inv_std, std::int64_t begin,
                    std::int64_t end) {
  const F32 d;
  const std::int64_t cols = w.count();
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    const T* weight = row<T>(w, 0, cols);
    for (std::int64_t m = begin; m < end; ++m) {
      const T *in = row<T>(x, m, cols), *grad = row<T>(dy, m, cols);
      T* out = row<T>(dx, m, cols);
      const VF center = hn::Set(d, mean.present() ? *row<float>(mean, m, 1) : 0.0f);
      const VF inv = hn::Set(d, *row<float>(inv_std, m, 1));
      VF sum_g = hn::Zero(d), sum_gn = hn::Zero(d);
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF g = hn::Mul(load(d, grad + i, lanes), load(d, weight + i, lanes));
        const VF n = hn::Mul(hn::Sub(load(d, in + i, lanes), center), inv);
        sum_g = hn::Add(sum_g, g);
        sum_gn = hn::MulAdd(g, n, sum_gn);
      });
      const float count = static_cast<float>(cols);
      const VF mean_g = hn::Set(d, mean.present() ? sum_lanes(d, sum_g) / count : 0.0f);
      const VF mean_gn = hn::Set(d, sum_lanes(d, sum_gn) / count);
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF g = hn::Mul(load(d, grad + i, lanes), load(d, weight + i, lanes));
        const VF n = hn::Mul(hn::Sub(load(d, in + i, lanes), center), inv);
        const VF inner = hn::NegMulAdd(n, mean_gn, hn::Sub(g, mean_g));
        store(d, hn::MulAdd(inv, inner, load(d, out + i, lanes)), out + i, lanes);
      });
    }
  });
}

// Sums over rows of dy n and (when db is not null) of dy, for `cols` columns from `first` on. RMSNorm rounds n to T,
// as its forward pass did.
template <class T>
HWY_INLINE void sum_columns(float* dw, float* db, Tensor dy, Tensor x, Tensor mean, Tensor inv_std,
                            std::int64_t first, std::int64_t cols) {
  const F32 d;
  const std::int64_t rows = inv_std.count(), stride = x.dim(-1);
  for (std::int64_t m = 0; m < rows; ++m) {
    const T *in = row<T>(x, m, stride) + first, *grad = row<T>(dy, m, stride) + first;
    const VF inv = hn::Set(d, *row<float>(inv_std, m, 1));
    const VF center = hn::Set(d, db != nullptr ? *row<float>(mean, m, 1) : 0.0f);
    for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
      const VF g = load(d, grad + i, lanes);
      VF n = hn::Mul(hn::Sub(load(d, in + i, lanes), center), inv);
      if (db == nullptr) n = round_to<T>(d, n);
      store(d, hn::MulAdd(g, n, load(d, dw + i, lanes)), dw + i, lanes);
      if (db != nullptr) store(d, hn::Add(g, load(d, db + i, lanes)), db + i, lanes);
    });
  }
}

HWY_INLINE void write_columns(float* out, const float* sums, std::int64_t n, Write write) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = write == Write::kOverwrite ? sums[i] : out[i] + sums[i];
}

// Columns [begin, end) of dw and db; an absent db means RMSNorm.
void norm_grad_columns(Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor mean, Tensor inv_std, Write write,
                       std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kTile = 512;
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t c = begin; c < end; c += kTile) {
      const std::int64_t n = std::min(kTile, end - c);
      alignas(64) float dw_sums[kTile] = {}, db_sums[kTile] = {};
      sum_columns<T>(dw_sums, db.present() ? db_sums : nullptr, dy, x, mean, inv_std, c, n);
      write_columns(row<float>(dw, c, 1), dw_sums, n, write);
      if (db.present()) write_columns(row<float>(db, c, 1), db_sums, n, write);
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(norm_grad_rows);
HWY_EXPORT(norm_grad_columns);

namespace {

void check_residual(const OpCheck& check, Tensor y, Tensor sum, Tensor x, Tensor delta, Tensor w) {
  check.compute("x", x);
  const std::int64_t rows = rows_of(x), cols = x.dim(-1);
  check.matrix("y", y, x.dtype, rows, cols);
  check.flat("w", w, x.dtype, cols);
  if (!delta.present()) return;
  check.matrix("delta", delta, x.dtype, rows, cols);
  check.matrix("sum", sum, x.dtype, rows, cols);
}

void check_grad(const OpCheck& check, Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w) {
  check.compute("x", x);
  const std::int64_t rows = rows_of(x), cols = x.dim(-1);
  check.matrix("dx", dx, x.dtype, rows, cols);
  check.matrix("dy", dy, x.dtype, rows, cols);
  check.flat("w", w, x.dtype, cols);
  check.flat("dw", dw, DType::kF32, cols);
}

void norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor inv_std,
               Write write) {
  const std::int64_t rows = rows_of(x), cols = x.dim(-1);
  parallel_for(rows, grain_of(2 * cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(norm_grad_rows)(dx, dy, x, w, mean, inv_std, begin, end);
  });
  constexpr std::int64_t kUnit = 64;
  parallel_for((cols + kUnit - 1) / kUnit, grain_of(2 * kUnit * rows), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(norm_grad_columns)
    (dw, db, dy, x, mean, inv_std, write, begin * kUnit, std::min(cols, end * kUnit));
  });
}

}  // namespace

void rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps) {
  const OpCheck check("rms_norm");
  check_residual(check, y, sum, x, delta, w);
  check.flat("inv_rms", inv_rms, DType::kF32, rows_of(x));
  parallel_for(rows_of(x), grain_of(2 * x.dim(-1)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(y, inv_rms, sum, x, delta, w, eps, begin, end);
  });
}

void rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write) {
  const OpCheck check("rms_norm_grad");
  check_grad(check, dx, dw, dy, x, w);
  check.flat("inv_rms", inv_rms, DType::kF32, rows_of(x));
  norm_grad(dx, dw, {}, dy, x, w, {}, inv_rms, write);
}

void layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w, Tensor b,
                float eps) {
  const OpCheck check("layer_norm");
  check_residual(check, y, sum, x, delta, w);
  check.flat("b", b, x.dtype, x.dim(-1));
  check.flat("mean", mean, DType::kF32, rows_of(x));
  check.flat("inv_std", inv_std, DType::kF32, rows_of(x));
  parallel_for(rows_of(x), grain_of(2 * x.dim(-1)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)(y, mean, inv_std, sum, x, delta, w, b, eps, begin, end);
  });
}

void layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor inv_std,
                     Write write) {
  const OpCheck check("layer_norm_grad");
  check_grad(check, dx, dw, dy, x, w);
  check.flat("db", db, DType::kF32, x.dim(-1));
  check.flat("mean", mean, DType::kF32, rows_of(x));
  check.flat("inv_std", inv_std, DType::kF32, rows_of(x));
  norm_grad(dx, dw, db, dy, x, w, mean, inv_std, write);
}

}  // namespace drivetrain::cpu
#endif

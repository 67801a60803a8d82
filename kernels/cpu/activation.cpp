#include "kernels/cpu/activation.h"

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

constexpr float kTwoSqrt2OverPi = 1.595769121605731f;
constexpr float kCubic = 0.044715f;

// 0.5 x (1 + tanh u) = x / (1 + e^-2u), which keeps its precision where tanh u is near -1.
HWY_INLINE VF gelu_of(F32 d, VF x) {
  const VF cubic_x2 = hn::Mul(hn::Mul(x, x), hn::Set(d, kCubic));
  const VF e = exp(d, hn::Mul(hn::MulAdd(cubic_x2, x, x), hn::Set(d, -kTwoSqrt2OverPi)));
  return hn::Div(x, hn::Add(e, hn::Set(d, 1.0f)));
}

// s + x s (1 - s) (2 u)' with s = sigmoid(2 u) = 1 / (1 + e) and 1 - s = e s, which does not cancel. Beyond |x| = 10
// the second term is 0 in f32; the clamp keeps e finite.
HWY_INLINE VF gelu_slope(F32 d, VF x_any) {
  const VF limit = hn::Set(d, 10.0f), one = hn::Set(d, 1.0f), minus_slope = hn::Set(d, -kTwoSqrt2OverPi);
  const VF x = hn::IfThenElse(hn::Gt(hn::Abs(x_any), limit), hn::CopySign(limit, x_any), x_any);
  const VF cubic_x2 = hn::Mul(hn::Mul(x, x), hn::Set(d, kCubic));
  const VF e = exp(d, hn::Mul(hn::MulAdd(cubic_x2, x, x), minus_slope));
  const VF s = hn::Div(one, hn::Add(one, e));
  const VF inner_slope = hn::Mul(hn::MulAdd(cubic_x2, hn::Set(d, 3.0f), one), hn::Set(d, kTwoSqrt2OverPi));
  return hn::MulAdd(hn::Mul(hn::Mul(x, s), hn::Mul(e, s)), inner_slope, s);
}

void gelu_range(Tensor y, Tensor x, std::int64_t begin, std::int64_t end) {
  const F32 d;
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    T* out = row<T>(y, begin, 1);
    const T* in = row<T>(x, begin, 1);
    for_vectors(end - begin, [&](std::int64_t i, auto lanes)
                                 HWY_ATTR { store(d, gelu_of(d, load(d, in + i, lanes)), out + i, lanes); });
  });
}

void gelu_grad_range(Tensor dx, Tensor dy, Tensor x, std::int64_t begin, std::int64_t end) {
  const F32 d;
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    T* out = row<T>(dx, begin, 1);
    const T *grad = row<T>(dy, begin, 1), *in = row<T>(x, begin, 1);
    for_vectors(end - begin, [&](std::int64_t i, auto lanes) HWY_ATTR {
      store(d, hn::Mul(load(d, grad + i, lanes), gelu_slope(d, load(d, in + i, lanes))), out + i, lanes);
    });
  });
}

void swiglu_rows(Tensor y, Tensor gate_up, std::int64_t begin, std::int64_t end) {
  const F32 d;
  const std::int64_t cols = y.dim(-1);
  with_compute_type(y.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = begin; m < end; ++m) {
      const T *gate = row<T>(gate_up, m, 2 * cols), *up = gate + cols;
      T* out = row<T>(y, m, cols);
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF g = load(d, gate + i, lanes);
        store(d, hn::Mul(hn::Mul(g, sigmoid(d, g)), load(d, up + i, lanes)), out + i, lanes);
      });
    }
  });
}

void swiglu_grad_rows(Tensor dgate_up, Tensor dy, Tensor gate_up, std::int64_t begin, std::int64_t end) {
  const F32 d;
  const std::int64_t cols = dy.dim(-1);
  const VF one = hn::Set(d, 1.0f);
  with_compute_type(dy.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = begin; m < end; ++m) {
      const T *gate = row<T>(gate_up, m, 2 * cols), *up = gate + cols, *grad = row<T>(dy, m, cols);
      T *dgate = row<T>(dgate_up, m, 2 * cols), *dup = dgate + cols;
      for_vectors(cols, [&](std::int64_t i, auto lanes) HWY_ATTR {
        const VF g = load(d, gate + i, lanes), u = load(d, up + i, lanes), dh = load(d, grad + i, lanes);
        const VF s = sigmoid(d, g);
        const VF slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
        store(d, hn::Mul(hn::Mul(dh, u), slope), dgate + i, lanes);
        store(d, hn::Mul(dh, hn::Mul(g, s)), dup + i, lanes);
      });
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(gelu_range);
HWY_EXPORT(gelu_grad_range);
HWY_EXPORT(swiglu_rows);
HWY_EXPORT(swiglu_grad_rows);

void gelu(Tensor y, Tensor x) {
  const OpCheck check("gelu");
  check.compute("x", x);
  check.flat("y", y, x.dtype, x.count());
  parallel_for(x.count(), grain_of(8), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(gelu_range)(y, x, begin, end);
  });
}

void gelu_grad(Tensor dx, Tensor dy, Tensor x) {
  const OpCheck check("gelu_grad");
  check.compute("x", x);
  check.flat("dy", dy, x.dtype, x.count());
  check.flat("dx", dx, x.dtype, x.count());
  parallel_for(x.count(), grain_of(8), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(gelu_grad_range)(dx, dy, x, begin, end);
  });
}

void swiglu(Tensor y, Tensor gate_up) {
  const OpCheck check("swiglu");
  check.compute("y", y);
  const std::int64_t cols = y.dim(-1), rows = rows_of(y);
  check.matrix("gate_up", gate_up, y.dtype, rows, 2 * cols);
  parallel_for(rows, grain_of(8 * cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(swiglu_rows)(y, gate_up, begin, end);
  });
}

void swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up) {
  const OpCheck check("swiglu_grad");
  check.compute("dy", dy);
  const std::int64_t cols = dy.dim(-1), rows = rows_of(dy);
  check.matrix("gate_up", gate_up, dy.dtype, rows, 2 * cols);
  check.matrix("dgate_up", dgate_up, dy.dtype, rows, 2 * cols);
  parallel_for(rows, grain_of(8 * cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(swiglu_grad_rows)(dgate_up, dy, gate_up, begin, end);
  });
}

}  // namespace drivetrain::cpu
#endif

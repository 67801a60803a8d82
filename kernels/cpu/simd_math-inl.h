// exp and sigmoid of f32 vectors, one copy per SIMD target. Other functions are not needed: tanh of GELU is a sigmoid.
#if defined(DRIVETRAIN_KERNELS_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DRIVETRAIN_KERNELS_CPU_SIMD_MATH_INL_H_
#undef DRIVETRAIN_KERNELS_CPU_SIMD_MATH_INL_H_
#else
#define DRIVETRAIN_KERNELS_CPU_SIMD_MATH_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// e^x within 2 units in the last place (relative error below 2e-7). Results below the smallest normal number are 0,
// above the largest inf; NaN stays. x = n ln 2 + r with |r| <= ln 2 / 2, e^r by the polynomial of Cephes' expf
// (Moshier), and 2^n by adding n to the exponent bits.
HWY_INLINE VF exp(F32 d, VF x) {
  const hn::RebindToUnsigned<F32> du;
  const VF magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: the sum has the rounded integer in its low bits
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const VF n = hn::Sub(shifted, magic);
  const VF r0 = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  const VF r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r0);
  VF p = hn::Set(d, 1.98756915e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.39819995e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.33345191e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.16657959e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.66666655e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.00000012e-1f));
  p = hn::MulAdd(hn::Mul(r, r), p, hn::Add(r, hn::Set(d, 1.0f)));
  const VF scaled = hn::BitCast(d, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
  // x + inf is inf for a large x and NaN for NaN.
  const VF upper = hn::IfThenElse(hn::Le(x, hn::Set(d, 88.7228317f)), scaled, hn::Add(x, hn::Inf(d)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365402f)), upper);
}

// 1 / (1 + e^-x).
HWY_INLINE VF sigmoid(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#include "kernels/cpu/rope.h"

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// Rotates one head of 2 * half elements by the angles of `cos` and `direction` * `sin`.
template <class T>
HWY_INLINE void rotate_head(T* head, const float* cos, const float* sin, float direction, std::int64_t half) {
  const F32 d;
  const VF sign = hn::Set(d, direction);
  for_vectors(half, [&](std::int64_t i, auto lanes) HWY_ATTR {
    const VF c = load(d, cos + i, lanes), s = hn::Mul(sign, load(d, sin + i, lanes));
    const VF low = load(d, head + i, lanes), high = load(d, head + half + i, lanes);
    store(d, hn::NegMulAdd(high, s, hn::Mul(low, c)), head + i, lanes);
    store(d, hn::MulAdd(low, s, hn::Mul(high, c)), head + half + i, lanes);
  });
}

void rotate_rows(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s, float direction,
                 std::int64_t begin, std::int64_t end) {
  const std::int64_t half = s.head_dim / 2, heads = s.heads + s.kv_heads, cols = (heads + s.kv_heads) * s.head_dim;
  with_compute_type(qkv.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = begin; m < end; ++m) {
      const std::int64_t position = *row<std::int32_t>(positions, m, 1);
      const float *c = row<float>(cos, position, half), *sn = row<float>(sin, position, half);
      T* first = row<T>(qkv, m, cols);
      for (std::int64_t h = 0; h < heads; ++h) rotate_head(first + h * s.head_dim, c, sn, direction, half);
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(rotate_rows);

namespace {

void rotate(const char* op, Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s,
            float direction) {
  const OpCheck check(op);
  check.compute("qkv", qkv);
  check.that(s.head_dim % 2 == 0, "head_dim " + std::to_string(s.head_dim) + " is odd");
  const std::int64_t rows = positions.count(), cols = (s.heads + 2 * s.kv_heads) * s.head_dim;
  check.matrix("qkv", qkv, qkv.dtype, rows, cols);
  check.flat("positions", positions, DType::kI32, rows);
  check.that(cos.ndim == 2, "cos must be (positions, head_dim / 2)");
  check.matrix("cos", cos, DType::kF32, cos.dim(0), s.head_dim / 2);
  check.matrix("sin", sin, DType::kF32, cos.dim(0), s.head_dim / 2);
  for (const std::int32_t p : positions.span<std::int32_t>()) {
    check.that(p >= 0 && p < cos.dim(0),
               "position " + std::to_string(p) + " has no row in a table of " + std::to_string(cos.dim(0)));
  }
  parallel_for(rows, grain_of(cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rotate_rows)(qkv, positions, cos, sin, s, direction, begin, end);
  });
}

}  // namespace

void rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  rotate("rope", qkv, positions, cos, sin, s, 1.0f);
}

void rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  rotate("rope_grad", dqkv, positions, cos, sin, s, -1.0f);
}

}  // namespace drivetrain::cpu
#endif

// Loads, stores and loops of f32 vectors over arrays of f32, bf16 and f16, one copy per SIMD target (Highway's scheme:
// included once per target). Conversions round to nearest even exactly like kernels/float16.h. Not for other folders.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/tensor.h"

#if defined(DRIVETRAIN_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DRIVETRAIN_KERNELS_CPU_SIMD_INL_H_
#undef DRIVETRAIN_KERNELS_CPU_SIMD_INL_H_
#else
#define DRIVETRAIN_KERNELS_CPU_SIMD_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// How many lanes of a vector lie inside the array: all of them, or the first n (at the end of a row).
struct Full {};
struct Part {
  std::size_t n;
};

template <class T>
HWY_INLINE T* row(const Tensor& t, std::int64_t index, std::int64_t cols) {
  return reinterpret_cast<T*>(t.data) + index * cols;
}

HWY_INLINE VF load(F32 d, const float* p, Full) {
  return hn::LoadU(d, p);
}

HWY_INLINE VF load(F32 d, const bf16* p, Full) {
  const hn::Rebind<std::uint16_t, F32> du16;
  const hn::RebindToUnsigned<F32> du32;
  return hn::BitCast(
      d, hn::ShiftLeft<16>(hn::PromoteTo(du32, hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(p)))));
}

HWY_INLINE void store(F32 d, VF v, float* p, Full) {
  hn::StoreU(v, d, p);
}

// The f32 bits of v rounded to bf16, still in the upper half of each lane; the lower half is garbage.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<F32>> bf16_bits(VF v) {
  const hn::RebindToUnsigned<F32> du32;
  const auto bits = hn::BitCast(du32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du32, 1u));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du32, 0x7fffu)), odd);
  const auto quiet = hn::Or(bits, hn::Set(du32, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(du32, hn::IsNaN(v)), quiet, rounded);
}

HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, F32>> to_bf16(VF v) {
  return hn::TruncateTo(hn::Rebind<std::uint16_t, F32>(), hn::ShiftRight<16>(bf16_bits(v)));
}

HWY_INLINE void store(F32, VF v, bf16* p, Full) {
  hn::StoreU(to_bf16(v), hn::Rebind<std::uint16_t, F32>(), reinterpret_cast<std::uint16_t*>(p));
}

// Highway's own emulation of half precision truncates, so targets without the instruction go lane by lane.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
HWY_INLINE VF load(F32 d, const f16* p, Full) {
  const hn::Rebind<hwy::float16_t, F32> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE void store(F32, VF v, f16* p, Full) {
  const hn::Rebind<hwy::float16_t, F32> dh;
  hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(p));
}
#else
HWY_INLINE VF load(F32 d, const f16* p, Full) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(p[i]);
  return hn::Load(d, lanes);
}
HWY_INLINE void store(F32 d, VF v, f16* p, Full) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) p[i] = f16(lanes[i]);
}
#endif

// store() that bypasses the cache, for results nobody reads soon. p is aligned to the vector.
HWY_INLINE void stream(F32 d, VF v, float* p, Full) {
  hn::Stream(v, d, p);
}
HWY_INLINE void stream(F32, VF v, bf16* p, Full) {
  hn::Stream(to_bf16(v), hn::Rebind<std::uint16_t, F32>(), reinterpret_cast<std::uint16_t*>(p));
}
HWY_INLINE void stream(F32 d, VF v, f16* p, Full) {
  const hn::Rebind<std::uint16_t, F32> du16;
  HWY_ALIGN f16 lanes[hn::MaxLanes(d)];
  store(d, v, lanes, Full{});
  hn::Stream(hn::Load(du16, reinterpret_cast<const std::uint16_t*>(lanes)), du16,
             reinterpret_cast<std::uint16_t*>(p));
}

// Lanes beyond the part are zero.
template <class T>
HWY_INLINE VF load(F32 d, const T* p, Part part) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, p, part.n * sizeof(T));
  return load(d, lanes, Full{});
}
template <class T>
HWY_INLINE void store(F32 d, VF v, T* p, Part part) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  store(d, v, lanes, Full{});
  std::memcpy(p, lanes, part.n * sizeof(T));
}

template <class T>
HWY_INLINE void stream(F32 d, VF v, T* p, Part part) {
  store(d, v, p, part);
}
template <class T>
bool is_vector_aligned(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % (hn::Lanes(F32()) * sizeof(T)) == 0;
}

// v with zero in the lanes beyond the part.
HWY_INLINE VF keep(F32, VF v, Full) {
  return v;
}
HWY_INLINE VF keep(F32 d, VF v, Part part) {
  return hn::IfThenElseZero(hn::FirstN(d, part.n), v);
}

// v rounded to the storage type T, as f32.
template <class T>
HWY_INLINE VF round_to(F32 d, VF v) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  store(d, v, lanes, Full{});
  return load(d, lanes, Full{});
}
template <>
HWY_INLINE VF round_to<float>(F32, VF v) {
  return v;
}
template <>
HWY_INLINE VF round_to<bf16>(F32 d, VF v) {
  const hn::RebindToUnsigned<F32> du32;
  return hn::BitCast(d, hn::And(bf16_bits(v), hn::Set(du32, 0xffff0000u)));
}

HWY_INLINE float sum_lanes(F32 d, VF v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}
HWY_INLINE float max_lanes(F32 d, VF v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}

// f(i, Full) for every whole vector of [0, n), then f(i, Part) for the rest.
template <class F>
HWY_INLINE void for_vectors(std::int64_t n, F&& f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, Full{});
  if (i < n) f(i, Part{static_cast<std::size_t>(n - i)});
}

// f(T{}) with the storage type T of a compute dtype.
template <class F>
HWY_INLINE void with_compute_type(DType t, F&& f) {
  if (t == DType::kF32) f(float{});
  if (t == DType::kBF16) f(bf16{});
  if (t == DType::kF16) f(f16{});
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

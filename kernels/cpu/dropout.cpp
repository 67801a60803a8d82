#include "kernels/cpu/dropout.h"

#include <cmath>
#include <cstring>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"
#include "kernels/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

using U32 = hn::RebindToUnsigned<F32>;
using VU = hn::Vec<U32>;

#if HWY_TARGET == HWY_SCALAR
// The four words of one counter; a batch is as many counters as a vector has lanes.
HWY_INLINE void philox_batch(std::uint32_t* words, std::uint32_t first, PhiloxCounter counter, PhiloxKey key) {
  counter[0] = first;
  const PhiloxCounter drawn = philox(counter, key);
  std::memcpy(words, drawn.data(), sizeof(drawn));
}
#else
struct Product {
  VU high, low;
};

HWY_INLINE Product multiply(U32 d, VU a, VU m) {
  const hn::Repartition<std::uint64_t, U32> d64;
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), m);
  const VU high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  const VU low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  return {high, low};
}

// words[4 l + w] = word w of the counter whose first word is `first` + l, for all lanes l.
HWY_INLINE void philox_batch(std::uint32_t* words, std::uint32_t first, PhiloxCounter counter, PhiloxKey key) {
  const U32 d;
  VU c0 = hn::Iota(d, first), c1 = hn::Set(d, counter[1]), c2 = hn::Set(d, counter[2]), c3 = hn::Set(d, counter[3]);
  const VU m0 = hn::Set(d, kPhiloxM0), m1 = hn::Set(d, kPhiloxM1);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Product p0 = multiply(d, c0, m0), p1 = multiply(d, c2, m1);
    c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, key[0]));
    c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, key[1]));
    c1 = p1.low;
    c3 = p0.low;
    key[0] += kPhiloxW0;
    key[1] += kPhiloxW1;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}
#endif

// out[i] = words[i] below threshold ? 0 : scale.
HWY_INLINE void select_scales(float* out, const std::uint32_t* words, std::int64_t n, std::uint32_t threshold,
                              float scale) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = words[i] < threshold ? 0.0f : scale;
}

void keep_scales_range(float* out, std::int64_t row_key, std::int64_t column_begin, std::int64_t count,
                       std::uint64_t seed, std::uint32_t site, std::uint32_t threshold, float scale) {
  const auto key_bits = static_cast<std::uint64_t>(row_key);
  const PhiloxCounter counter{0, site, static_cast<std::uint32_t>(key_bits),
                              static_cast<std::uint32_t>(key_bits >> 32)};
  const auto batch = static_cast<std::int64_t>(4 * hn::Lanes(U32()));
  HWY_ALIGN std::uint32_t words[4 * hn::MaxLanes(U32())];
  std::int64_t column = column_begin & ~std::int64_t{3};
  while (column < column_begin + count) {
    philox_batch(words, static_cast<std::uint32_t>(column / 4), counter, philox_key(seed));
    const std::int64_t from = std::max(column, column_begin), to = std::min(column + batch, column_begin + count);
    select_scales(out + (from - column_begin), words + (from - column), to - from, threshold, scale);
    column += batch;
  }
}

// y = scales > 0 ? x * scales : 0, so that a dropped inf is 0 too.
void apply_scales(Tensor y, Tensor x, std::int64_t begin, const float* scales, std::int64_t n) {
  const F32 d;
  with_compute_type(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    T* out = row<T>(y, begin, 1);
    const T* in = row<T>(x, begin, 1);
    for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR {
      const VF s = load(d, scales + i, lanes);
      const auto kept = hn::Gt(s, hn::Zero(d));
      store(d, hn::IfThenElseZero(kept, hn::Mul(load(d, in + i, lanes), s)), out + i, lanes);
    });
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(keep_scales_range);
HWY_EXPORT(apply_scales);

void keep_scales(float* out, std::int64_t row_key, std::int64_t column_begin, std::int64_t count,
                 const Dropout& dropout) {
  const auto p = static_cast<double>(dropout.p);
  const auto threshold = static_cast<std::uint32_t>(std::llround(p * 0x1p32));
  const auto scale = static_cast<float>(1.0 / (1.0 - p));
  HWY_DYNAMIC_DISPATCH(keep_scales_range)
  (out, row_key, column_begin, count, dropout.seed, dropout.site, threshold, scale);
}

void dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout) {
  const OpCheck check("dropout");
  check.compute("x", x);
  check.that(dropout.p >= 0 && dropout.p < 1, "p is " + std::to_string(dropout.p) + ", wanted 0 <= p < 1");
  const std::int64_t rows = rows_of(x), cols = x.dim(-1);
  check.matrix("y", y, x.dtype, rows, cols);
  if (dropout.p == 0) return copy(y, x);
  check.flat("row_keys", row_keys, DType::kI64, rows);
  const std::int64_t* keys = row_keys.as<std::int64_t>();
  parallel_for(rows, grain_of(8 * cols), [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kTile = 1024;
    alignas(64) float scales[kTile];
    for (std::int64_t m = begin; m < end; ++m) {
      for (std::int64_t c = 0; c < cols; c += kTile) {
        const std::int64_t n = std::min(kTile, cols - c);
        keep_scales(scales, keys[m], c, n, dropout);
        HWY_DYNAMIC_DISPATCH(apply_scales)(y, x, m * cols + c, scales, n);
      }
    }
  });
}

}  // namespace drivetrain::cpu
#endif

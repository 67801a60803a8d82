// The f32 tile product and the packing of attention operands into units, one copy per SIMD target.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/bf16_dot.h"
#include "kernels/cpu/tile_product.h"

#if defined(DRIVETRAIN_KERNELS_CPU_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DRIVETRAIN_KERNELS_CPU_TILE_PRODUCT_INL_H_
#undef DRIVETRAIN_KERNELS_CPU_TILE_PRODUCT_INL_H_
#else
#define DRIVETRAIN_KERNELS_CPU_TILE_PRODUCT_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// Sums that stay in registers: 24 of 32, or 12 of 16.
inline constexpr std::int64_t kMaxRows = 6;
inline constexpr std::int64_t kMaxVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL ? 4 : 2;

template <int kRows, int kVectors>
void f32_block(const TileProduct<float>& p, std::int64_t row, std::int64_t col) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + col;
  float* c = p.c + row * p.c_stride + col;
  VF sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  for (std::int64_t k = 0; k < p.k; ++k, a += p.a_step, b += p.b_stride) {
    VF right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = hn::LoadU(d, b + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const VF left = hn::Set(d, a[i * p.a_row]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  if (p.write == Write::kAccumulate)
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Add(sum[i][j], hn::LoadU(d, c + i * p.c_stride + j * lanes));
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * p.c_stride + j * lanes);
}

template <int kVectors>
void f32_rows(const TileProduct<float>& p, std::int64_t row, std::int64_t col) {
  switch (std::min(kMaxRows, p.m - row)) {
    case 1:
      return f32_block<1, kVectors>(p, row, col);
    case 2:
      return f32_block<2, kVectors>(p, row, col);
    case 3:
      return f32_block<3, kVectors>(p, row, col);
    case 4:
      return f32_block<4, kVectors>(p, row, col);
    case 5:
      return f32_block<5, kVectors>(p, row, col);
    default:
      return f32_block<6, kVectors>(p, row, col);
  }
}

inline void tile_product(const TileProduct<float>& p) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  for (std::int64_t col = 0; col < p.n; col += kMaxVectors * lanes) {
    const std::int64_t vectors = std::min(kMaxVectors, (p.n - col) / lanes);
    for (std::int64_t row = 0; row < p.m; row += kMaxRows) {
      if (vectors == 1) f32_rows<1>(p, row, col);
      if (vectors == 2) f32_rows<2>(p, row, col);
      if constexpr (kMaxVectors > 2) {
        if (vectors == 3) f32_rows<3>(p, row, col);
        if (vectors == 4) f32_rows<4>(p, row, col);
      }
    }
  }
}

inline void tile_product(const TileProduct<Bf16Pair>& p) {
  bf16_tile_product(p);
}

// ---- packing: `rows` rows of `cols` elements, `stride` apart --------------------------------------------------------

// Units of row i at out[i * out_stride ...]: the left operand of a product over columns.
template <class T>
void pack_left(float* out, std::int64_t out_stride, const T* x, std::int64_t rows, std::int64_t cols,
               std::int64_t stride) {
  const F32 d;
  for (std::int64_t i = 0; i < rows; ++i)
    for_vectors(cols, [&](std::int64_t k, auto lanes) HWY_ATTR {
      store(d, load(d, x + i * stride + k, lanes), out + i * out_stride + k, lanes);
    });
}
inline void pack_left(Bf16Pair* out, std::int64_t out_stride, const bf16* x, std::int64_t rows, std::int64_t cols,
                      std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    out[i * out_stride + units<Bf16Pair>(cols) - 1].bits = 0;
    std::memcpy(out + i * out_stride, x + i * stride, static_cast<std::size_t>(cols) * sizeof(bf16));
  }
}

// 4 x 4 words.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose_words(std::uint32_t* out, std::int64_t out_stride, const std::uint32_t* x,
                                std::int64_t stride) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) out[j * out_stride + i] = x[i * stride + j];
}
#else
HWY_INLINE void transpose_words(std::uint32_t* out, std::int64_t out_stride, const std::uint32_t* x,
                                std::int64_t stride) {
  const hn::FixedTag<std::uint32_t, 4> d;
  const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + stride);
  const auto r2 = hn::LoadU(d, x + 2 * stride), r3 = hn::LoadU(d, x + 3 * stride);
  const auto even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
  const auto even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, out);
  hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, out + out_stride);
  hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, out + 2 * out_stride);
  hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, out + 3 * out_stride);
}
#endif

constexpr std::int64_t words(std::int64_t width) {
  return (width + 3) / 4 * 4;
}

// Transposed: unit k of row j at out[k * out_stride + j], zero in the padding columns: the right operand of a product
// over columns. `out` has words(units(cols)) rows; `line` is room for kTileLanes rows of as many units.
template <class Unit, class T>
void pack_transposed(Unit* out, std::int64_t out_stride, const T* x, std::int64_t rows, std::int64_t cols,
                     std::int64_t stride, Unit* line) {
  const std::int64_t width = words(units<Unit>(cols));
  if (cols % kPerUnit<Unit> != 0 || width != units<Unit>(cols))
    std::memset(line, 0, static_cast<std::size_t>(kTileLanes * width) * sizeof(Unit));
  for (std::int64_t j = 0; j < rows; j += kTileLanes) {
    const std::int64_t count = std::min(kTileLanes, rows - j);
    // Rows that are whole words already need no copy in units.
    const bool direct = sizeof(T) * kPerUnit<Unit> == sizeof(Unit) && count == kTileLanes &&
                        cols == width * kPerUnit<Unit> && stride % kPerUnit<Unit> == 0;
    if (!direct) {
      if (count < kTileLanes) std::memset(line, 0, static_cast<std::size_t>(kTileLanes * width) * sizeof(Unit));
      pack_left(line, width, x + j * stride, count, cols, stride);
    }
    const auto* words_in =
        reinterpret_cast<const std::uint32_t*>(direct ? static_cast<const void*>(x + j * stride) : line);
    const std::int64_t row = direct ? stride / kPerUnit<Unit> : width;
    for (std::int64_t k = 0; k < width; k += 4)
      for (std::int64_t i = 0; i < kTileLanes; i += 4)
        transpose_words(reinterpret_cast<std::uint32_t*>(out + k * out_stride + j + i), out_stride,
                        words_in + i * row + k, row);
  }
}

// Row-major with neighbouring rows in one unit: (unit of rows, column j) at out[unit * out_stride + j], zero in the
// padding: the right operand of a product over rows.
template <class T>
void pack_right(float* out, std::int64_t out_stride, const T* x, std::int64_t rows, std::int64_t cols,
                std::int64_t stride) {
  const F32 d;
  for (std::int64_t i = 0; i < rows; ++i) {
    for_vectors(cols, [&](std::int64_t j, auto lanes) HWY_ATTR {
      store(d, load(d, x + i * stride + j, lanes), out + i * out_stride + j, lanes);
    });
    std::fill(out + i * out_stride + cols, out + i * out_stride + padded(cols), 0.0f);
  }
}
inline void pack_right(Bf16Pair* out, std::int64_t out_stride, const bf16* x, std::int64_t rows, std::int64_t cols,
                       std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; i += 2) {
    const bf16 *low = x + i * stride, *high = low + stride;
    Bf16Pair* line = out + i / 2 * out_stride;
    if (i + 1 < rows)
      for (std::int64_t j = 0; j < cols; ++j)
        line[j].bits = low[j].bits | static_cast<std::uint32_t>(high[j].bits) << 16;
    else
      for (std::int64_t j = 0; j < cols; ++j) line[j].bits = low[j].bits;
    std::fill(line + cols, line + padded(cols), Bf16Pair{0});
  }
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

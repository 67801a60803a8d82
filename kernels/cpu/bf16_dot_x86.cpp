// bf16 dot products on AVX512-BF16. Highway 1.0.3 does not know the instruction, hence intrinsics; the functions
// carry their target, so the rest of the program stays free of it.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/bf16_dot.h"

#define DRIVETRAIN_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace drivetrain::cpu {

namespace {

using Product = TileProduct<Bf16Pair>;

constexpr std::int64_t kLanes = 16;
constexpr int kMaxRows = 6, kMaxVectors = 4;  // 24 sums, 4 of b, 1 of a: 29 of 32 registers

template <int kRows, int kVectors>
DRIVETRAIN_AVX512_BF16 void block(const Product& p, std::int64_t row, std::int64_t col) {
  const Bf16Pair* a = p.a + row * p.a_row;
  const Bf16Pair* b = p.b + col;
  float* c = p.c + row * p.c_stride + col;
  __m512 sum[kRows][kVectors];
  // c may lie far away (a weight gradient): fetch it while the products run.
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) _mm_prefetch(c + i * p.c_stride + j * kLanes, _MM_HINT_T0);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) sum[i][j] = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < p.k; ++k, a += p.a_step, b += p.b_stride) {
    __m512i right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = _mm512_loadu_si512(b + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const __m512i left = _mm512_set1_epi32(static_cast<int>(a[i * p.a_row].bits));
      for (int j = 0; j < kVectors; ++j)
        sum[i][j] =
            _mm512_dpbf16_ps(sum[i][j], reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right[j]));
    }
  }
  if (p.write == Write::kAccumulate)
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        sum[i][j] = _mm512_add_ps(sum[i][j], _mm512_loadu_ps(c + i * p.c_stride + j * kLanes));
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) _mm512_storeu_ps(c + i * p.c_stride + j * kLanes, sum[i][j]);
}

using Block = void (*)(const Product&, std::int64_t, std::int64_t);

template <int kVectors>
constexpr Block kBlocks[kMaxRows] = {block<1, kVectors>, block<2, kVectors>, block<3, kVectors>,
                                     block<4, kVectors>, block<5, kVectors>, block<6, kVectors>};

Block choose(std::int64_t rows, std::int64_t vectors) {
  switch (vectors) {
    case 1:
      return kBlocks<1>[rows - 1];
    case 2:
      return kBlocks<2>[rows - 1];
    case 3:
      return kBlocks<3>[rows - 1];
    default:
      return kBlocks<4>[rows - 1];
  }
}

}  // namespace

void bf16_tile_product(const Product& p) {
  for (std::int64_t col = 0; col < p.n; col += kMaxVectors * kLanes) {
    const std::int64_t vectors = std::min<std::int64_t>(kMaxVectors, (p.n - col) / kLanes);
    for (std::int64_t row = 0; row < p.m; row += kMaxRows)
      choose(std::min<std::int64_t>(kMaxRows, p.m - row), vectors)(p, row, col);
  }
}

DRIVETRAIN_AVX512_BF16 double bf16_dot_rounds(std::int64_t rounds, float& sink) {
  constexpr int kSums = 12;
  const __m512 start = _mm512_set1_ps(sink);
  const __m512bh a = _mm512_cvtne2ps_pbh(start, start), b = _mm512_cvtne2ps_pbh(start, start);
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));  // equal sums would be merged
  for (std::int64_t r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  __m512 total = sums[0];
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  sink = 1 + 1e-6f * _mm512_cvtss_f32(total);
  return 2.0 * kSums * 2 * kLanes * static_cast<double>(rounds);
}

}  // namespace drivetrain::cpu

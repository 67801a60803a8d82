#include "kernels/cpu/pair_gemm.h"

#include <algorithm>

#include "kernels/cpu/carver.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pair_gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/tile_product-inl.h"

#ifndef DRIVETRAIN_KERNELS_CPU_PAIR_GEMM_ONCE
#define DRIVETRAIN_KERNELS_CPU_PAIR_GEMM_ONCE
namespace drivetrain::cpu {
namespace {

constexpr std::int64_t kPanel = 64;       // columns of one packed panel: four vectors
constexpr std::int64_t kDepth = 2048;     // elements of k packed at once: a panel of 256 KB
constexpr std::int64_t kRows = 768;       // rows that share a packed panel, at most
constexpr std::int64_t kLeftBlock = 48;   // columns of dy packed side by side: eight register tiles
constexpr std::int64_t kDwRowBlocks = 4;  // of kLeftBlock columns of dy, that stay in the second cache
constexpr std::int64_t kDwDepth = 1024;   // tokens packed at once for dw

struct ProductCall {
  Tensor c, a, b, bias;
  RightOperand right;
  std::int64_t m, n, k;
};

// Rows [row, row_end) of the panel that begins at column col.
struct PanelTask {
  std::int64_t row, row_end, col;
};

struct ProductScratch {
  explicit ProductScratch(Carver carve)
      : panel(carve.take<Bf16Pair>(kDepth / 2 * kPanel)),
        line(carve.take<Bf16Pair>(kTileLanes * kDepth / 2)),
        sums(carve.take<float>(kRows * kPanel)),
        bytes(carve.bytes()) {}
  Bf16Pair* panel;  // (k / 2, kPanel)
  Bf16Pair* line;
  float* sums;  // (kRows, kPanel)
  std::size_t bytes;
};

struct DwCall {
  float* dw;
  const bf16 *dy, *x;
  Bf16Pair* panels;  // x packed: panels of (tokens / 2, kPanel)
  std::int64_t tokens, n, k;
  Write write;
};

}  // namespace
}  // namespace drivetrain::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// Rows [row, row_end) of c (+ bias), columns from col on, from the finished sums.
template <class T>
void finish_panel(const ProductCall& call, const PanelTask& task, const float* sums) {
  const F32 d;
  const std::int64_t cols = std::min(kPanel, call.n - task.col);
  const bf16* bias = call.bias.present() ? call.bias.as<bf16>() + task.col : nullptr;
  for (std::int64_t i = task.row; i < task.row_end; ++i) {
    T* out = call.c.as<T>() + i * call.n + task.col;
    const float* in = sums + (i - task.row) * kPanel;
    for_vectors(cols, [&](std::int64_t j, auto lanes) HWY_ATTR {
      VF v = hn::LoadU(d, in + j);
      if (bias) v = hn::Add(v, load(d, bias + j, lanes));
      store(d, v, out + j, lanes);
    });
  }
}

void product_panel(const ProductCall& call, const PanelTask& task, std::byte* memory) {
  const ProductScratch room{Carver(memory)};
  const std::int64_t cols = std::min(kPanel, call.n - task.col);
  const bf16 *a = call.a.as<bf16>(), *b = call.b.as<bf16>();
  for (std::int64_t k = 0; k < call.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, call.k - k);
    if (call.right == RightOperand::kRowsAreColumns)
      pack_transposed(room.panel, kPanel, b + task.col * call.k + k, cols, depth, call.k, room.line);
    else
      pack_right(room.panel, kPanel, b + k * call.n + task.col, depth, cols, call.n);
    tile_product(TileProduct<Bf16Pair>{
        room.sums, kPanel, reinterpret_cast<const Bf16Pair*>(a + task.row * call.k + k), call.k / 2, 1, room.panel,
        kPanel, task.row_end - task.row, padded(cols), depth / 2, k == 0 ? Write::kOverwrite : Write::kAccumulate});
  }
  if (call.c.dtype == DType::kF32)
    finish_panel<float>(call, task, room.sums);
  else
    finish_panel<bf16>(call, task, room.sums);
}

void pack_right_panel(const DwCall& call, std::int64_t panel) {
  const std::int64_t col = panel * kPanel, cols = std::min(kPanel, call.k - col);
  pack_right(call.panels + col * units<Bf16Pair>(call.tokens), kPanel, call.x + col, call.tokens, cols, call.k);
}

// Rows [begin, end) of dw: their columns of dy are packed, pairs of tokens in one unit, and stay in the second cache
// while all of x passes by.
void dw_rows(const DwCall& call, std::int64_t begin, std::int64_t end, Bf16Pair* left) {
  const std::int64_t depth = units<Bf16Pair>(call.tokens);
  for (std::int64_t row = begin; row < end; row += kLeftBlock)
    pack_right(left + (row - begin) * depth, kLeftBlock, call.dy + row, call.tokens, std::min(kLeftBlock, end - row),
               call.n);
  for (std::int64_t col = 0; col < call.k; col += kPanel)
    for (std::int64_t row = begin; row < end; row += kLeftBlock)
      tile_product(TileProduct<Bf16Pair>{call.dw + row * call.k + col, call.k, left + (row - begin) * depth, 1,
                                         kLeftBlock, call.panels + col * depth, kPanel,
                                         std::min(kLeftBlock, end - row), std::min(kPanel, call.k - col), depth,
                                         call.write});
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

namespace {

HWY_EXPORT(product_panel);
HWY_EXPORT(pack_right_panel);
HWY_EXPORT(dw_rows);

std::int64_t blocks(std::int64_t n, std::int64_t size) {
  return (n + size - 1) / size;
}

// Rows that share a panel: few enough that every thread gets some, many enough to repay the packing.
std::int64_t rows_per_task(std::int64_t m, std::int64_t panels) {
  const std::int64_t wanted = blocks(2 * omp_get_max_threads(), panels);
  const std::int64_t rows = std::clamp<std::int64_t>(blocks(m, wanted), PairGemm::kMinRows, kRows);
  return blocks(m, blocks(m, rows));
}

}  // namespace

void PairGemm::product(Tensor c, Tensor a, Tensor b, RightOperand right, Tensor bias) {
  const std::int64_t k = a.dim(-1), n = c.dim(-1), m = c.count() / n;
  const ProductCall call{c, a, b, bias, right, m, n, k};
  const std::int64_t panels = blocks(n, kPanel), rows = rows_per_task(m, panels), row_blocks = blocks(m, rows);
  const std::size_t share = ProductScratch(Carver(nullptr)).bytes;
  std::byte* memory = scratch_.need(share * static_cast<std::size_t>(omp_get_max_threads()));
  const auto run = HWY_DYNAMIC_DISPATCH(product_panel);
  parallel_for(panels * row_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::byte* mine = memory + share * static_cast<std::size_t>(omp_get_thread_num());
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / panels * rows;
      run(call, {row, std::min(row + rows, m), i % panels * kPanel}, mine);
    }
  });
}

void PairGemm::dw(Tensor dw, Tensor dy, Tensor x, Write write) {
  const std::int64_t n = dy.dim(-1), k = x.dim(-1), m = x.count() / k, depth = std::min(m, kDwDepth);
  const std::int64_t panels = blocks(k, kPanel), left_blocks = blocks(n, kLeftBlock);
  const std::int64_t per_task = std::clamp<std::int64_t>(left_blocks / (2 * omp_get_max_threads()), 1, kDwRowBlocks);
  const std::int64_t rows = per_task * kLeftBlock, tasks = blocks(n, rows);
  const std::int64_t panel_units = panels * kPanel * units<Bf16Pair>(depth),
                     left_units = rows * units<Bf16Pair>(depth);
  auto* memory = reinterpret_cast<Bf16Pair*>(
      scratch_.need(static_cast<std::size_t>(panel_units + left_units * omp_get_max_threads()) * sizeof(Bf16Pair)));
  for (std::int64_t token = 0; token < m; token += depth) {
    const DwCall call{dw.as<float>(),
                      dy.as<bf16>() + token * n,
                      x.as<bf16>() + token * k,
                      memory,
                      std::min(depth, m - token),
                      n,
                      k,
                      token == 0 ? write : Write::kAccumulate};
    parallel_for(panels, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) HWY_DYNAMIC_DISPATCH(pack_right_panel)(call, i);
    });
    parallel_for(tasks, 1, [&](std::int64_t begin, std::int64_t end) {
      Bf16Pair* left = memory + panel_units + left_units * omp_get_thread_num();
      for (std::int64_t i = begin; i < end; ++i)
        HWY_DYNAMIC_DISPATCH(dw_rows)(call, i * rows, std::min((i + 1) * rows, n), left);
    });
  }
}

}  // namespace drivetrain::cpu
#endif

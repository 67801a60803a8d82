// The products of a linear layer on processors with a bf16 dot product: panels of 64 columns are packed into the second
// cache on the way and multiplied by the register tile of bf16_dot_x86.cpp. Nothing is kept between calls. For large
// even shapes only; everything else goes to kernels/cpu/matmul.h.
#pragma once
#include "kernels/cpu/host_pool.h"
#include "kernels/cpu/tile_product.h"

namespace drivetrain::cpu {

// Where the columns of the right operand lie in w: they are its rows in y = x w^T, its columns in dx = dy w.
enum class RightOperand { kRowsAreColumns, kColumns };

class PairGemm {
 public:
  explicit PairGemm(HostPool& pool) : scratch_(pool) {}

  // Below this many rows packing a panel costs more than it saves.
  static constexpr std::int64_t kMinRows = 64;

  // c (m, n) bf16 or f32 = a (m, k) b (+ bias (n)), all bf16. b is w (n, k) for kRowsAreColumns, w (k, n) for kColumns.
  static bool fits(std::int64_t m, std::int64_t k) { return m >= kMinRows && k % 2 == 0; }
  void product(Tensor c, Tensor a, Tensor b, RightOperand right, Tensor bias);

  // dw (n, k) f32 (+)= dy (m, n)^T x (m, k).
  static bool fits_dw(std::int64_t n, std::int64_t k) { return n >= kMinRows && k % kTileLanes == 0; }
  void dw(Tensor dw, Tensor dy, Tensor x, Write write);

 private:
  Scratch scratch_;
};

}  // namespace drivetrain::cpu

// The three products of a linear layer on the CPU: which arithmetic each takes (own bf16 pairs, or oneDNN with its
// primitives and packed weights cached). One object per device and one caller at a time; it knows shapes, not layers.
#pragma once
#include <memory>

#include "kernels/cpu/host_pool.h"
#include "kernels/ops.h"

namespace drivetrain::cpu {

// bf16 on a processor with a bf16 dot product (and without AMX) goes to PairGemm, which keeps nothing: 88 to 92 % of the
// register peak on the GPT-2 124M shapes with 512 rows, where oneDNN reaches 82 to 91 % (tools/bench_kernels.cpp).
// Everything else goes to oneDNN, which packs a plain operand block by block inside every product and loses 3 to 7 % by
// it. Hence, measured with 256 to 1024 rows:
// * linear_dx keeps w packed between two weights_changed(): one pass costs 2 to 5 % of a product and saves 5 to 7 %.
//   Not for vocabulary-sized w (n > kPackRows), where oneDNN's pass costs up to a third of a product.
// * linear leaves w plain: there the pass transposes and costs what one use saves.
// * linear_dw packs x, which is small, at each call.
inline constexpr std::int64_t kPackRows = 8192;

class Linear {
 public:
  explicit Linear(HostPool& pool);
  ~Linear();
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  void forward(Tensor y, Tensor x, Tensor w, Tensor bias);
  void dx(Tensor dx, Tensor dy, Tensor w);
  void dw(Tensor dw, Tensor dy, Tensor x, Write write);
  // Packed copies become stale; those that nobody used since the last call are freed.
  void weights_changed();
  std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drivetrain::cpu

// c (m, n) row-major = a b (+ bias) (+ c), by one oneDNN primitive that is made once per shape. Operands may be
// transposed in memory; b may be given packed. Throws kDevice when oneDNN refuses.
#pragma once
#include <memory>

#include "kernels/cpu/host_pool.h"
#include "kernels/ops.h"

namespace drivetrain::cpu {

enum class Layout : std::uint8_t { kRows, kColumns, kPacked };  // row-major, column-major, oneDNN's own choice

struct MatmulShape {
  std::int64_t m, n, k;
  DType in, out;
  Layout a, b;  // a is never packed
  bool bias;    // n elements of type `in`
  Write write;
  auto operator<=>(const MatmulShape&) const = default;
};

class Matmul {
 public:
  explicit Matmul(HostPool& pool);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void run(const MatmulShape& shape, std::byte* c, const std::byte* a, const std::byte* b, const std::byte* bias);
  // Bytes of b in the packed layout of this shape.
  std::size_t packed_bytes(const MatmulShape& shape);
  // Whether a b packed for one shape serves the other.
  bool same_packing(const MatmulShape& one, const MatmulShape& other);
  // Packs a plain b (layout `from`) for this shape.
  void pack(const MatmulShape& shape, std::byte* packed, const std::byte* b, Layout from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drivetrain::cpu

// Argument checks of the CPU ops: each throws kLogic that names the op and the tensor, or passes. No arithmetic.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/tensor.h"

namespace drivetrain::cpu {

class OpCheck {
 public:
  explicit OpCheck(const char* op) : op_(op) {}

  // f32, bf16 or f16.
  void compute(const char* name, const Tensor& t) const;
  void flat(const char* name, const Tensor& t, DType dtype, std::int64_t count) const;
  // All leading dimensions folded: rows x cols elements, the last dimension of `cols`.
  void matrix(const char* name, const Tensor& t, DType dtype, std::int64_t rows, std::int64_t cols) const;
  void that(bool holds, const std::string& claim) const;

 private:
  [[noreturn]] void fail(const char* name, const Tensor& t, const std::string& wanted) const;
  const char* op_;
};

// Rows of a tensor whose leading dimensions are folded; 0 for an empty one.
std::int64_t rows_of(const Tensor& t);

}  // namespace drivetrain::cpu

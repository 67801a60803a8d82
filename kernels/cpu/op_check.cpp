#include "kernels/cpu/op_check.h"

namespace drivetrain::cpu {

void OpCheck::fail(const char* tensor, const Tensor& t, const std::string& wanted) const {
  throw Error(ErrorKind::kLogic, std::string(op_) + ": " + tensor + " is " + (t.present() ? t.describe() : "absent") +
                                     ", wanted " + wanted);
}

void OpCheck::compute(const char* tensor, const Tensor& t) const {
  const bool ok = t.present() && (t.dtype == DType::kF32 || t.dtype == DType::kBF16 || t.dtype == DType::kF16);
  if (!ok) fail(tensor, t, "a tensor of f32, bf16 or f16");
}

void OpCheck::flat(const char* tensor, const Tensor& t, DType dtype, std::int64_t count) const {
  const bool ok = t.present() && t.dtype == dtype && t.count() == count;
  if (!ok) fail(tensor, t, std::string(name(dtype)) + " with " + std::to_string(count) + " elements");
}

void OpCheck::matrix(const char* tensor, const Tensor& t, DType dtype, std::int64_t rows, std::int64_t cols) const {
  const bool ok = t.present() && t.dtype == dtype && t.dim(-1) == cols && t.count() == rows * cols;
  if (!ok) fail(tensor, t, std::string(name(dtype)) + "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]");
}

void OpCheck::that(bool holds, const std::string& claim) const {
  if (!holds) throw Error(ErrorKind::kLogic, std::string(op_) + ": " + claim);
}

std::int64_t rows_of(const Tensor& t) {
  const std::int64_t n = t.count();
  return n == 0 ? 0 : n / t.dim(-1);
}

}  // namespace drivetrain::cpu

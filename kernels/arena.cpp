#include "kernels/arena.h"

#include <algorithm>

namespace drivetrain {

Tensor Arena::take(DType dtype, std::initializer_list<std::int64_t> dims) {
  Tensor out(buffer_.data() + used_, dtype, dims);
  const std::size_t bytes = (out.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ + bytes > buffer_.bytes())
    throw Error(ErrorKind::kMemory, "the activation arena is full: " + out.describe() + " needs " +
                                        std::to_string(bytes) + " bytes, " + std::to_string(used_) + " of " +
                                        std::to_string(buffer_.bytes()) + " are in use");
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return out;
}

}  // namespace drivetrain

// Lays the scratch arrays of a kernel out in one block of memory. It allocates nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace drivetrain::cpu {

// With a null base it only measures.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <class T>
  T* take(std::int64_t count) {
    T* out = base_ ? reinterpret_cast<T*>(base_ + bytes_) : nullptr;
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return out;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::size_t bytes_ = 0;
};

}  // namespace drivetrain::cpu

// A stack allocator over one buffer, for activations and scratch, with a high-water mark. No fragmentation: what is
// taken inside a scope is given back, all at once, when the scope ends.
#pragma once
#include <cstddef>
#include <initializer_list>

#include "kernels/buffer.h"

namespace drivetrain {

class Arena {
 public:
  static constexpr std::size_t kAlignment = 256;

  explicit Arena(Buffer buffer) : buffer_(std::move(buffer)) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised memory. Throws kMemory with the bytes wanted, used and available when the buffer is too small.
  Tensor take(DType dtype, std::initializer_list<std::int64_t> dims);

  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
    ~Scope() { arena_.used_ = mark_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t mark_;
  };
  [[nodiscard]] Scope scope() { return Scope(*this); }

  std::size_t used_bytes() const { return used_; }
  std::size_t peak_bytes() const { return peak_; }
  std::size_t capacity_bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace drivetrain

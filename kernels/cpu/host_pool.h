// HostPool gives out host memory and keeps what comes back: page faults on first touch can cost more than the
// arithmetic, so every page is touched once and reused. It is not a general allocator: blocks are large and long-lived.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

namespace drivetrain::cpu {

class HostPool {
 public:
  static constexpr std::size_t kAlignment = 4096;

  HostPool() = default;
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // Aligned to kAlignment, contents undefined, pages present. Throws kMemory with the bytes asked for.
  std::byte* allocate(std::size_t bytes);
  // Gives p back for reuse. The pool never holds more than the most that was in use at once: what exceeds it returns
  // to the system when the next fresh block is taken.
  void release(std::byte* p) noexcept;

  std::size_t used_bytes() const;  // given out now
  std::size_t held_bytes() const;  // given out or kept for reuse

 private:
  std::byte* take_kept(std::size_t block);
  void trim_kept(std::size_t limit) noexcept;

  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> used_;
  std::multimap<std::size_t, std::byte*> kept_;
  std::size_t used_bytes_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

// Memory that only grows and belongs to one op: scratch that the next call finds again.
class Scratch {
 public:
  explicit Scratch(HostPool& pool) : pool_(pool) {}
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes` bytes; what was there before is lost.
  std::byte* need(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  HostPool& pool_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace drivetrain::cpu

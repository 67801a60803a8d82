#include "kernels/host_memory.h"

#include <cstdlib>
#include <cstring>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::size_t kAlignment = 4096;

void check_size(const Tensor& t, std::size_t bytes) {
  if (t.bytes() != bytes)
    throw Error(ErrorKind::kLogic, t.describe() + " has " + std::to_string(t.bytes()) + " bytes, the host side has " +
                                       std::to_string(bytes));
}

}  // namespace

Ops& HostMemory::ops() {
  throw Error(ErrorKind::kLogic, "HostMemory only has memory: arithmetic needs a device with operations");
}

std::byte* HostMemory::allocate(std::size_t bytes) {
  const std::size_t pages = bytes / kAlignment + 1;
  void* p = std::aligned_alloc(kAlignment, pages * kAlignment);
  if (!p) throw Error(ErrorKind::kMemory, "cannot allocate " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(p);
}

void HostMemory::release(std::byte* p) noexcept {
  std::free(p);
}

void HostMemory::upload(Tensor dst, std::span<const std::byte> src) {
  check_size(dst, src.size());
  if (!src.empty()) std::memcpy(dst.data, src.data(), src.size());
}

void HostMemory::download(std::span<std::byte> dst, Tensor src) {
  check_size(src, dst.size());
  if (!dst.empty()) std::memcpy(dst.data(), src.data, dst.size());
}

}  // namespace drivetrain

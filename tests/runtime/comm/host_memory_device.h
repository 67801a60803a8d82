// The least device that a communicator's symmetric_buffer() needs: CPU memory, no operations.
#pragma once
#include <cstdlib>
#include <cstring>

#include "kernels/device.h"
#include "kernels/error.h"

namespace drivetrain::test {

class HostMemoryDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override { return "memory of the host"; }
  Ops& ops() override { throw Error(ErrorKind::kLogic, "this device only has memory"); }
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  }
  void release(std::byte* p) noexcept override { std::free(p); }
  void upload(Tensor dst, std::span<const std::byte> src) override { std::memcpy(dst.data, src.data(), src.size()); }
  void download(std::span<std::byte> dst, Tensor src) override { std::memcpy(dst.data(), src.data, dst.size()); }
  Event record(Lane) override { return {}; }
  void wait(Lane, const Event&) override {}
  void synchronize() override {}
};

}  // namespace drivetrain::test

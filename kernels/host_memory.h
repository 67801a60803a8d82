// The least device: memory of the host and no operations. Enough for Communicator::symmetric_buffer().
#pragma once
#include "kernels/device.h"

namespace drivetrain {

// Stateless, so it may be used by several threads at once.
class HostMemory final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override { return "memory of the host"; }
  [[noreturn]] Ops& ops() override;  // throws kLogic: there is no arithmetic here

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* p) noexcept override;
  // Copies, done on return. Throw kLogic when the sizes differ.
  void upload(Tensor dst, std::span<const std::byte> src) override;
  void download(std::span<std::byte> dst, Tensor src) override;

  Event record(Lane) override { return {}; }
  void wait(Lane, const Event&) override {}
  void synchronize() override {}
};

}  // namespace drivetrain

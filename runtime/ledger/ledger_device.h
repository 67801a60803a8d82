// A device whose ops are charged to a ledger; everything else is the device it wraps. Whoever is handed a Device gets
// measured ops without knowing: neither models nor kernels have a line about the ledger.
#pragma once
#include <memory>

#include "kernels/device.h"
#include "runtime/ledger/ledger_ops.h"

namespace drivetrain {

class LedgerDevice final : public Device {
 public:
  // The ledger outlives the device.
  LedgerDevice(std::unique_ptr<Device> inner, StepLedger& ledger)
      : inner_(std::move(inner)), ops_(inner_->ops(), ledger) {}

  DeviceKind kind() const override { return inner_->kind(); }
  std::string description() const override { return inner_->description(); }
  Ops& ops() override { return ops_; }
  std::byte* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void release(std::byte* p) noexcept override { inner_->release(p); }
  void upload(Tensor dst, std::span<const std::byte> src) override { inner_->upload(dst, src); }
  void download(std::span<std::byte> dst, Tensor src) override { inner_->download(dst, src); }
  Event record(Lane lane) override { return inner_->record(lane); }
  void wait(Lane lane, const Event& event) override { inner_->wait(lane, event); }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Device> inner_;
  LedgerOps ops_;
};

}  // namespace drivetrain

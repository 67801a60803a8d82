// A device: its memory, its two lanes (queues of work) and its op table. Knows nothing of ranks, models or files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/tensor.h"

namespace drivetrain {

class Ops;

enum class DeviceKind { kCpu, kCuda, kCudaEmulated, kPlan };
enum class Lane { kCompute, kComm };  // nobody else creates queues

// A point in a lane. Copies share the point. On the CPU, whose lanes run inline, it is always reached.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<void> handle) : handle_(std::move(handle)) {}
  void* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string description() const = 0;  // "AMD EPYC, 2 threads, avx512-bf16"
  virtual Ops& ops() = 0;

  // Memory aligned to 4096 bytes; contents undefined. Throws kMemory with the bytes asked for.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* p) noexcept = 0;
  // Host -> device, ordered on the compute lane; src may be reused on return.
  virtual void upload(Tensor dst, std::span<const std::byte> src) = 0;
  // Device -> host; returns when dst is valid (synchronizes the compute lane).
  virtual void download(std::span<std::byte> dst, Tensor src) = 0;

  virtual Event record(Lane lane) = 0;
  virtual void wait(Lane lane, const Event& event) = 0;  // orders lanes, never the host
  virtual void synchronize() = 0;                        // the host waits for both lanes
};

}  // namespace drivetrain

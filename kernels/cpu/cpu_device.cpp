#include "kernels/cpu/cpu_device.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/host_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace drivetrain {

namespace {

int affinity_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  // More processors than the fixed-size set holds.
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(':') + 2 <= line.size()) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads), ops_(pool_, threads) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override {
    return processor_name() + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread, " : " threads, ") +
           cpu::isa_name();
  }
  Ops& ops() override { return ops_; }

  std::byte* allocate(std::size_t bytes) override {
    cpu::use_threads(threads_);
    return pool_.allocate(bytes);
  }
  void release(std::byte* p) noexcept override { pool_.release(p); }
  void upload(Tensor dst, std::span<const std::byte> src) override {
    check(dst, src.size());
    if (!src.empty()) std::memcpy(dst.data, src.data(), src.size());
  }
  void download(std::span<std::byte> dst, Tensor src) override {
    check(src, dst.size());
    if (!dst.empty()) std::memcpy(dst.data(), src.data, dst.size());
  }

  Event record(Lane) override { return {}; }
  void wait(Lane, const Event&) override {}
  void synchronize() override {}

 private:
  static void check(Tensor t, std::size_t bytes) {
    if (t.bytes() != bytes)
      throw Error(ErrorKind::kLogic, t.describe() + " has " + std::to_string(t.bytes()) +
                                         " bytes, the host side has " + std::to_string(bytes));
  }

  int threads_;
  cpu::HostPool pool_;
  cpu::CpuOps ops_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
  if (threads < 0)
    throw Error(ErrorKind::kConfig,
                "the CPU device needs 0 (automatic) or more threads, not " + std::to_string(threads));
  return std::make_unique<CpuDevice>(threads == 0 ? affinity_threads() : threads);
}

}  // namespace drivetrain

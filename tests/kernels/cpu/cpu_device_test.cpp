#include "kernels/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/cpu/host_pool.h"
#include "kernels/ops.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain {
namespace {

using testing::Host;

TEST(CpuDevice, DescribesItself) {
  const auto device = make_cpu_device(2);
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  EXPECT_NE(device->description().find(", 2 threads, "), std::string::npos) << device->description();
  EXPECT_NE(make_cpu_device(0)->description().find(" thread"), std::string::npos);
  EXPECT_THROW(make_cpu_device(-1), Error);
}

TEST(CpuDevice, MovesBytesBothWays) {
  const auto device = make_cpu_device(1);
  Buffer buffer(*device, 64);
  const Tensor t = buffer.tensor(DType::kI32);
  const std::vector<std::int32_t> in = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::vector<std::int32_t> out(16);
  device->upload(t, std::as_bytes(std::span(in)));
  device->download(std::as_writable_bytes(std::span(out)), t);
  EXPECT_EQ(in, out);
  EXPECT_THROW(device->upload(t, std::as_bytes(std::span(in).first(3))), Error);
}

TEST(CpuDevice, RefusesMoreThanTheMachineHas) {
  const auto device = make_cpu_device(1);
  try {
    device->allocate(std::size_t{1} << 60);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kMemory);
    EXPECT_NE(std::string(e.what()).find(std::to_string(std::size_t{1} << 60)), std::string::npos);
  }
}

TEST(CpuDevice, SeveralSideBySide) {
  const Host x = Host::random(DType::kF32, {33, 48}, 1), w = Host::random(DType::kF32, {40, 48}, 2);
  std::vector<Host> results(3, Host(DType::kF32, {33, 40}));
  std::vector<std::thread> ranks;
  for (Host& y : results)
    ranks.emplace_back([&] {
      const auto device = make_cpu_device(1);
      for (int i = 0; i < 20; ++i) device->ops().linear(y, x, w, {});
    });
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(results[0].bytes(), results[1].bytes());
  EXPECT_EQ(results[0].bytes(), results[2].bytes());
}

TEST(HostPool, ReusesWhatComesBack) {
  cpu::HostPool pool;
  std::byte* first = pool.allocate(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % cpu::HostPool::kAlignment, 0u);
  pool.release(first);
  EXPECT_EQ(pool.allocate(8000), first);
  EXPECT_NE(pool.allocate(8000), first);
  EXPECT_EQ(pool.used_bytes(), 16384u);
}

TEST(HostPool, NeverHoldsMoreThanWasInUse) {
  cpu::HostPool pool;
  constexpr std::size_t kMega = std::size_t{1} << 20;
  for (std::size_t size = 4; size <= 40; size += 4) {
    std::byte* p = pool.allocate(size * kMega);
    std::memset(p, 1, size * kMega);
    pool.release(p);
    EXPECT_LE(pool.held_bytes(), size * kMega);
  }
  pool.release(nullptr);
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(HostPool, EmptyAllocation) {
  cpu::HostPool pool;
  EXPECT_NE(pool.allocate(0), nullptr);
}

}  // namespace
}  // namespace drivetrain

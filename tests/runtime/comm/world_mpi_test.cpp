// The world that open_world() makes under mpirun: every collective between processes, in ordinary and symmetric memory.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/comm/world.h"
#include "tests/mpi/mpi_world.h"
#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/host_memory_device.h"
#include "tests/runtime/comm/random_program.h"

namespace drivetrain {
namespace {

using test::mpi_test_world;

// For what the grid has shown once already, over MPI, where every step may cost a time slice on a busy machine.
void check_corners(Communicator& world, test::Workspace& w) {
  for (const std::int64_t count : {0, 1, 1024}) test::check_every_collective<float>(world, w, count);
  test::check_every_collective<bf16>(world, w, 100003);
}

TEST(World, KnowsItsPlace) {
  Communicator& world = mpi_test_world();
  const ProcessPlace place = process_place();
  EXPECT_EQ(place.world_rank, world.rank());
  EXPECT_EQ(place.world_size, world.size());
  EXPECT_EQ(place.local_rank, world.rank());
  EXPECT_EQ(place.local_size, world.size());
}

TEST(World, OrdinaryMemoryIsExact) {
  Communicator& world = mpi_test_world();
  std::vector<std::byte> memory(test::workspace_bytes(world.size(), 100003));
  test::Workspace w{memory.data(), memory.size()};
  test::check_grid(world, w, 100003);
}

TEST(World, SymmetricMemoryIsExact) {
  Communicator& world = mpi_test_world();
  test::HostMemoryDevice device;
  const Buffer memory = world.symmetric_buffer(device, test::workspace_bytes(world.size(), 100003));
  test::Workspace w{memory.data(), memory.bytes()};
  world.transport() == "shm" ? test::check_grid(world, w, 100003) : check_corners(world, w);
}

TEST(World, LargeWindowsAreExact) {
  Communicator& world = mpi_test_world();
  const std::int64_t count = 1'500'001;  // several windows and a ragged end on every transport
  std::vector<std::byte> memory(test::workspace_bytes(world.size(), count));
  test::Workspace w{memory.data(), memory.size()};
  for (const ReduceOp op : test::kReduceOps) test::check_all_reduce<float>(world, w, count, op);
  test::check_all_reduce<bf16>(world, w, count, ReduceOp::kSum);
  test::check_reduce<std::int32_t>(world, w, count, 1, ReduceOp::kAverage);
  test::check_reduce_scatter<float>(world, w, count, ReduceOp::kSum, test::Placement::kInPlace);
  test::check_all_gather<float>(world, w, count, test::Placement::kInPlace);
  test::check_broadcast<float>(world, w, count, 1);
  test::check_all_to_all<float>(world, w, count);
  test::check_ring<float>(world, w, count);
}

TEST(World, GroupsWorkOnTheSameMemory) {
  Communicator& world = mpi_test_world();
  test::HostMemoryDevice device;
  const Buffer memory = world.symmetric_buffer(device, test::workspace_bytes(world.size(), 100003));
  test::Workspace w{memory.data(), memory.bytes()};
  const auto half = world.split(world.rank() % 2, -world.rank());  // in reverse order
  test::check_every_collective<float>(*half, w, 100003);
  test::check_every_collective<bf16>(*half, w, 1024);
  const auto rest = world.split(world.rank() == 0 ? -1 : 0, 0);
  EXPECT_EQ(rest == nullptr, world.rank() == 0);
  if (rest) test::check_every_collective<float>(*rest, w, 31);
}

TEST(World, TimesTellWaitingFromTransfer) {
  Communicator& world = mpi_test_world();
  float x = 1;
  world.barrier();
  const int late = world.size() - 1;
  if (world.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const CollectiveTiming t = world.all_reduce(Tensor(&x, DType::kF32, {1}), ReduceOp::kSum).timing();
  EXPECT_LE(t.arrival_ns, t.last_arrival_ns);
  EXPECT_LE(t.last_arrival_ns, t.end_ns);
  EXPECT_EQ(t.last_arrival_ns - t.arrival_ns > 30'000'000, world.rank() != late)
      << (t.last_arrival_ns - t.arrival_ns) << " ns on rank " << world.rank();
}

TEST(World, RandomProgramOverOverlappingGroups) {
  Communicator& world = mpi_test_world();
  const int steps = world.transport() == "shm" ? 300 : 60;
  test::run_random_program(world, steps, 4);
  test::run_random_program(world, steps, 5, test::ProgramMemory::kSymmetric);
}

}  // namespace
}  // namespace drivetrain

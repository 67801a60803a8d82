// The world that open_world() makes under mpirun: every collective between processes, in ordinary and symmetric memory.
#include <gtest/gtest.h>

#include "runtime/comm/world.h"
#include "tests/mpi/mpi_world.h"
#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/host_memory_device.h"

namespace drivetrain {
namespace {

using test::mpi_test_world;

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
  test::check_grid(world, w, 100003);
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

}  // namespace
}  // namespace drivetrain

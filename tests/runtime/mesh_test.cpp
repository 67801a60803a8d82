#include "runtime/mesh.h"

#include <gtest/gtest.h>

#include "runtime/comm/self_comm.h"
#include "runtime/comm/thread_comm.h"

namespace drivetrain {
namespace {

// Splits of the same world give it to the mesh, which wants to own it.
std::unique_ptr<Communicator> own_copy(Communicator& world) {
  return world.split(0, world.rank());
}

int sum_over(Communicator& group, int value) {
  std::int32_t x = value;
  group.all_reduce(Tensor(&x, DType::kI32, {1}), ReduceOp::kSum).wait();
  return x;
}

TEST(Mesh, TensorPeersAreNeighbours) {
  run_thread_ranks(6, [](Communicator& world) {
    Mesh mesh(own_copy(world), {3, 2});
    const int r = world.rank();
    EXPECT_EQ(mesh.tp_rank(), r % 2);
    EXPECT_EQ(mesh.dp_rank(), r / 2);
    EXPECT_EQ(mesh.tp().size(), 2);
    EXPECT_EQ(mesh.dp().size(), 3);
    EXPECT_EQ(mesh.world().size(), 6);
    EXPECT_EQ(sum_over(mesh.tp(), r), 4 * (r / 2) + 1);
    EXPECT_EQ(sum_over(mesh.dp(), r), 6 + 3 * (r % 2));
  });
}

TEST(Mesh, OneRankIsAMesh) {
  Mesh mesh(make_self_communicator(), {1, 1});
  EXPECT_EQ(mesh.dp_rank(), 0);
  EXPECT_EQ(mesh.tp_rank(), 0);
}

TEST(Mesh, RefusesAShapeThatDoesNotCoverTheWorld) {
  run_thread_ranks(4, [](Communicator& world) {
    for (const MeshShape shape : {MeshShape{3, 1}, MeshShape{4, 2}, MeshShape{0, 4}, MeshShape{-2, -2}}) {
      try {
        Mesh mesh(own_copy(world), shape);
        ADD_FAILURE() << "accepted " << shape.dp << " x " << shape.tp;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kConfig);
      }
    }
  });
}

}  // namespace
}  // namespace drivetrain

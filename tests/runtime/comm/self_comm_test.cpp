#include "runtime/comm/self_comm.h"

#include <gtest/gtest.h>

#include "tests/runtime/comm/collective_cases.h"

namespace drivetrain {
namespace {

TEST(SelfComm, EveryCollectiveIsACopy) {
  const auto self = make_self_communicator();
  EXPECT_EQ(self->rank(), 0);
  EXPECT_EQ(self->size(), 1);
  EXPECT_EQ(self->transport(), "self");
  std::vector<std::byte> memory(test::workspace_bytes(1, 100003));
  test::Workspace w{memory.data(), memory.size()};
  test::check_grid(*self, w, 100003);
}

TEST(SelfComm, SplitsIntoItselfOrNothing) {
  const auto self = make_self_communicator();
  EXPECT_EQ(self->split(3, 0)->size(), 1);
  EXPECT_EQ(self->split(-1, 0), nullptr);
}

TEST(SelfComm, RefusesOtherRanks) {
  const auto self = make_self_communicator();
  float x = 1;
  const Tensor t(&x, DType::kF32, {1});
  EXPECT_THROW((void)self->broadcast(t, 1), Error);
  EXPECT_THROW((void)self->send(t, 0), Error);
  EXPECT_THROW((void)self->recv(t, 0), Error);
}

}  // namespace
}  // namespace drivetrain

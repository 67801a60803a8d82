#include "runtime/comm/thread_comm.h"

#include <gtest/gtest.h>

#include <array>

#include "runtime/comm/progress_comm.h"
#include "tests/runtime/comm/collective_cases.h"

namespace drivetrain {
namespace {

class ThreadRanks : public testing::TestWithParam<int> {};

TEST_P(ThreadRanks, EveryCollectiveIsExact) {
  run_thread_ranks(GetParam(), [](Communicator& world) {
    std::vector<std::byte> memory(test::workspace_bytes(world.size(), 100003));
    test::Workspace w{memory.data(), memory.size()};
    test::check_grid(world, w, 100003);
  });
}

TEST_P(ThreadRanks, EveryCollectiveIsExactInTheBackground) {
  run_thread_ranks(GetParam(), [](Communicator& world) {
    ProgressCommunicator background(world.split(0, world.rank()), 0);
    std::vector<std::byte> memory(test::workspace_bytes(world.size(), 1024));
    test::Workspace w{memory.data(), memory.size()};
    test::check_grid(background, w, 1024);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, testing::Values(1, 2, 3, 4, 7));

TEST(ThreadComm, TellsWhatItIs) {
  run_thread_ranks(3, [](Communicator& world) {
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.transport(), "threads");
  });
}

TEST(ThreadComm, FirstExceptionReachesTheCallerAndWakesPeers) {
  try {
    run_thread_ranks(4, [](Communicator& world) {
      if (world.rank() == 2) throw Error(ErrorKind::kNumeric, "rank two met a NaN");
      float x = 0;
      world.all_reduce(Tensor(&x, DType::kF32, {1}), ReduceOp::kSum).wait();
    });
    FAIL() << "no exception";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kNumeric);
    EXPECT_NE(std::string(e.what()).find("rank two met a NaN"), std::string::npos);
  }
}

TEST(ThreadComm, PeersOfAFailedRankLearnTheReason) {
  std::array<std::string, 3> reasons;
  const auto body = [&](Communicator& world) {
    if (world.rank() == 0) throw Error(ErrorKind::kIo, "the disk is full");
    try {
      world.barrier();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kComm);
      reasons[static_cast<std::size_t>(world.rank())] = e.what();
    }
  };
  EXPECT_THROW(run_thread_ranks(3, body), Error);
  EXPECT_NE(reasons[1].find("the disk is full"), std::string::npos) << reasons[1];
  EXPECT_NE(reasons[2].find("the disk is full"), std::string::npos) << reasons[2];
}

TEST(ThreadComm, ARankThatReturnsEarlyDoesNotHangItsPeers) {
  try {
    run_thread_ranks(3, [](Communicator& world) {
      if (world.rank() != 1) world.barrier();
    });
    FAIL() << "no exception";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kComm);
    EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("left"), std::string::npos) << e.what();
  }
}

TEST(ThreadComm, RefusesAWorldWithoutRanks) {
  EXPECT_THROW(run_thread_ranks(0, [](Communicator&) {}), Error);
}

}  // namespace
}  // namespace drivetrain

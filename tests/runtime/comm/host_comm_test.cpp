// The collectives over shared memory on every path, groups, failures. Ranks are threads here, so that the sanitizers
// see both sides; shm_comm_test and the mpirun tests run the same code between processes.
#include "runtime/comm/host_comm.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "runtime/comm/host_threads.h"
#include "runtime/comm/thread_comm.h"
#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/host_memory_device.h"

namespace drivetrain {
namespace {

// Runs body and returns what each rank's Error said.
template <class Body>
std::vector<std::string> errors_of_ranks(int ranks, HostOptions options, const Body& body) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  run_host_threads(ranks, options, [&](Communicator& world) {
    try {
      body(world);
    } catch (const Error& e) {
      said[static_cast<std::size_t>(world.rank())] = e.what();
    }
  });
  return said;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class HostPaths : public testing::TestWithParam<int> {};

TEST_P(HostPaths, StagedMemoryIsExact) {
  HostOptions options;
  options.staging_bytes = 8192;  // many windows
  run_host_threads(GetParam(), options, [](Communicator& world) {
    std::vector<std::byte> memory(test::workspace_bytes(world.size(), 100003));
    test::Workspace w{memory.data(), memory.size()};
    test::check_every_collective<float>(world, w, 100003);
    test::check_every_collective<std::uint8_t>(world, w, 100003);
    test::check_grid(world, w, 1024);
  });
}

TEST_P(HostPaths, SymmetricMemoryIsExact) {
  run_host_threads(GetParam(), {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const Buffer memory = world.symmetric_buffer(device, test::workspace_bytes(world.size(), 100003));
    test::Workspace w{memory.data(), memory.bytes()};
    test::check_every_collective<float>(world, w, 100003);
    test::check_every_collective<bf16>(world, w, 100003);
    test::check_grid(world, w, 1024);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, HostPaths, testing::Values(1, 2, 3, 4, 7));

TEST(HostComm, SymmetricAndOrdinaryMemoryMix) {
  run_host_threads(3, {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const Buffer symmetric = world.symmetric_buffer(device, 100000);
    std::vector<float> ordinary(20000);
    float* x = world.rank() == 1 ? ordinary.data() : reinterpret_cast<float*>(symmetric.data());
    for (int i = 0; i < 20000; ++i) x[i] = static_cast<float>(world.rank() + i % 16);
    world.all_reduce(Tensor(x, DType::kF32, {20000}), ReduceOp::kSum).wait();
    for (int i = 0; i < 20000; ++i) ASSERT_EQ(x[i], static_cast<float>(3 + 3 * (i % 16)));
  });
}

TEST(HostComm, SymmetricMemoryOfTheWorldServesItsGroups) {
  run_host_threads(4, {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const Buffer memory = world.symmetric_buffer(device, 80000);
    const auto pair = world.split(world.rank() % 2, world.rank());
    auto* x = reinterpret_cast<float*>(memory.data());
    for (int i = 0; i < 20000; ++i) x[i] = static_cast<float>(world.rank());
    pair->all_reduce(Tensor(x, DType::kF32, {20000}), ReduceOp::kSum).wait();
    for (int i = 0; i < 20000; ++i) ASSERT_EQ(x[i], world.rank() % 2 == 0 ? 2.0f : 4.0f);
  });
}

TEST(HostComm, SymmetricMemoryOfAGroupIsOrdinaryForTheWorld) {
  run_host_threads(4, {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const auto pair = world.split(world.rank() / 2, 0);
    const Buffer memory = pair->symmetric_buffer(device, 80000);
    auto* x = reinterpret_cast<float*>(memory.data());
    for (int i = 0; i < 20000; ++i) x[i] = 1;
    world.all_reduce(Tensor(x, DType::kF32, {20000}), ReduceOp::kSum).wait();
    for (int i = 0; i < 20000; ++i) ASSERT_EQ(x[i], 4.0f);
  });
}

TEST(HostComm, RanksBoundToACoreEachHaveTheCoresOfAll) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<std::size_t> cores;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) cores.push_back(i);
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  const auto blocks = make_heap_blocks();
  BlockTicket ticket;
  const SharedBlock block = blocks->create(world_block_bytes(3), ticket);
  std::vector<std::unique_ptr<HostWorld>> worlds(3);
  for (std::size_t r = 0; r < worlds.size(); ++r) {
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cores[r % 2], &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      worlds[r] = std::make_unique<HostWorld>(blocks, block, std::vector{0, 1, 2}, static_cast<int>(r), HostOptions{},
                                              nullptr);
    }).join();
  }
  for (const auto& world : worlds) EXPECT_EQ(world->cores(), 2);
}

TEST(HostComm, InPlaceAllToAllIsRefused) {
  run_thread_ranks(2, [](Communicator& world) {
    std::array<float, 4> x{};
    const Tensor t(x.data(), DType::kF32, {4});
    EXPECT_THROW((void)world.all_to_all(t, t), Error);
  });
}

TEST(HostComm, ZeroLengthNullPointersKeepTheOrder) {  // CO-05
  for (const int ranks : {1, 2, 3})
    run_host_threads(ranks, {}, [](Communicator& world) {
      const Tensor nothing(nullptr, DType::kF32, {0});
      for (int round = 0; round < 3; ++round) {
        world.all_reduce(nothing, ReduceOp::kSum).wait();
        world.all_gather(nothing, nothing).wait();
        world.reduce_scatter(nothing, nothing, ReduceOp::kMax).wait();
        world.broadcast(nothing, 0).wait();
        world.reduce(nothing, 0, ReduceOp::kSum).wait();
        world.all_to_all(nothing, nothing).wait();
        float x = static_cast<float>(world.rank() + 1);
        world.all_reduce(Tensor(&x, DType::kF32, {1}), ReduceOp::kSum).wait();
        EXPECT_EQ(x, static_cast<float>(world.size() * (world.size() + 1) / 2));
      }
    });
}

TEST(HostComm, DifferentSizesRaiseOnAllRanksWithBothSizes) {  // CO-01
  const auto said = errors_of_ranks(3, {}, [](Communicator& world) {
    std::array<float, 8> x{};
    world.barrier();
    world.all_reduce(Tensor(x.data(), DType::kF32, {world.rank() == 1 ? 4 : 8}), ReduceOp::kSum).wait();
  });
  for (const std::string& text : said) {
    EXPECT_TRUE(contains(text, "all_reduce(f32[8], sum)") && contains(text, "all_reduce(f32[4], sum)")) << text;
    EXPECT_TRUE(contains(text, "rank 1") && contains(text, "#2") && contains(text, "world of 3")) << text;
  }
}

TEST(HostComm, DifferentOperationsTypesAndRootsRaise) {
  using Wrong = void (*)(Communicator&, const Tensor&);
  const Wrong wrongs[] = {
      [](Communicator& c, const Tensor& x) { c.barrier(), (void)x; },
      [](Communicator& c, const Tensor& x) { c.broadcast(x, 1).wait(); },
      [](Communicator& c, const Tensor& x) { c.broadcast(Tensor(x.data, DType::kI32, {2}), 0).wait(); },
      [](Communicator& c, const Tensor& x) { (void)c.split(0, 0), (void)x; },
  };
  for (const Wrong wrong : wrongs) {
    const auto said = errors_of_ranks(2, {}, [&](Communicator& world) {
      std::array<float, 2> data{};
      const Tensor x(data.data(), DType::kF32, {2});
      if (world.rank() == 1) return wrong(world, x);
      world.broadcast(x, 0).wait();
    });
    for (const std::string& text : said)
      EXPECT_TRUE(contains(text, "mismatched") && contains(text, "broadcast(f32[2], root 0)")) << text;
  }
}

TEST(HostComm, AllocatingBesideADifferentCallRaises) {
  for (const auto reach : {HostOptions::Reach::kSymmetric, HostOptions::Reach::kEverywhere}) {
    HostOptions options;
    options.reach = reach;
    const auto said = errors_of_ranks(2, options, [](Communicator& world) {
      test::HostMemoryDevice device;
      if (world.rank() == 1) return world.barrier();
      const Buffer buffer = world.symmetric_buffer(device, 1000);
    });
    for (const std::string& text : said)
      EXPECT_TRUE(contains(text, "mismatched") && contains(text, "symmetric_buffer()") && contains(text, "barrier()"))
          << text;
  }
}

TEST(HostComm, WithoutTheCheckDifferentCallsMeet) {
  HostOptions options;
  options.check = false;
  const auto said = errors_of_ranks(2, options, [](Communicator& world) {
    float x = static_cast<float>(world.rank());
    world.all_reduce(Tensor(&x, DType::kF32, {1}), world.rank() == 0 ? ReduceOp::kMax : ReduceOp::kMin).wait();
    EXPECT_EQ(x, world.rank() == 0 ? 1.0f : 0.0f);
  });
  for (const std::string& text : said) EXPECT_EQ(text, "");
}

TEST(HostComm, ADeadlineScopeHoldsForEveryGroupOfTheWorldAndEnds) {
  HostOptions options;
  options.timeout = std::chrono::milliseconds(200);
  const auto said = errors_of_ranks(2, options, [](Communicator& world) {
    const auto pair = world.split(0, 0);
    const auto late = [&] {
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      pair->barrier();
    };
    {
      const DeadlineScope patient(world, {std::chrono::milliseconds(20000), "the.key"});
      late();
    }
    {
      const DeadlineScope hasty(*pair, {std::chrono::milliseconds(100), "the.key"});
      EXPECT_THROW(late(), Error);
    }
    world.barrier();
  });
  for (const std::string& text : said)
    EXPECT_TRUE(contains(text, "deadline of 100 ms") && contains(text, "Raise the.key")) << text;
}

TEST(HostComm, AFailedWorldStaysFailed) {
  const auto said = errors_of_ranks(2, {}, [](Communicator& world) {
    if (world.rank() == 0) {
      world.abort("the operator said stop");
      EXPECT_THROW(world.barrier(), Error);
    }
    world.barrier();
  });
  for (const std::string& text : said) EXPECT_TRUE(contains(text, "the operator said stop")) << text;
}

TEST(HostComm, AbortReachesOtherGroups) {
  const auto said = errors_of_ranks(4, {}, [](Communicator& world) {
    const auto pair = world.split(world.rank() / 2, 0);
    if (world.rank() == 0) return pair->abort("rank zero gave up");
    pair->barrier();
    pair->barrier();
    world.barrier();
  });
  for (std::size_t r = 1; r < 4; ++r) EXPECT_TRUE(contains(said[r], "rank zero gave up")) << r << ": " << said[r];
}

TEST(HostComm, TheDeadlineNamesTheAbsentRank) {
  HostOptions options;
  options.timeout = std::chrono::milliseconds(200);
  const auto said = errors_of_ranks(3, options, [](Communicator& world) {
    world.barrier();
    if (world.rank() == 2) return std::this_thread::sleep_for(std::chrono::milliseconds(600));
    std::array<float, 2> x{};
    world.all_reduce(Tensor(x.data(), DType::kF32, {2}), ReduceOp::kMax).wait();
  });
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(contains(said[r], "all_reduce(f32[2], max) #2")) << said[r];
    EXPECT_TRUE(contains(said[r], "absent: rank 2 (host ") && contains(said[r], "running")) << said[r];
    EXPECT_TRUE(contains(said[r], "last call barrier() #1 in the world of 3 ranks, done 0.")) << said[r];
    EXPECT_FALSE(contains(said[r], "rank 0 (") || contains(said[r], "rank 1 (")) << said[r];
  }
}

TEST(HostWait, APeerThatDoesItsPartAndLeavesBetweenTwoLooksIsNotMissed) {
  int looks = 0;
  const auto late_once = [&] { return looks++ == 0; };
  const auto yes = [] { return true; };
  const auto no = [] { return false; };
  EXPECT_FALSE(missed(/*late=*/late_once, /*alive=*/no));
  EXPECT_TRUE(missed(/*late=*/yes, /*alive=*/no));
  EXPECT_FALSE(missed(/*late=*/yes, /*alive=*/yes));
  EXPECT_FALSE(missed(/*late=*/no, /*alive=*/no));
}

TEST(HostComm, ARankThatDidItsPartMayLeaveWhilePeersStillWait) {
  HostOptions options;
  options.life_check = std::chrono::milliseconds(0);
  for (int i = 0; i < 300; ++i) {
    run_host_threads(4, options, [](Communicator& world) {
      std::int32_t one = 1;
      world.all_reduce(Tensor(&one, DType::kI32, {1}), ReduceOp::kSum).wait();
      EXPECT_EQ(one, 4);
    });
  }
}

TEST(HostComm, TimesTellWaitingFromTransfer) {
  run_thread_ranks(2, [](Communicator& world) {
    float x = 1;
    world.barrier();
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const CollectiveTiming t = world.all_reduce(Tensor(&x, DType::kF32, {1}), ReduceOp::kSum).timing();
    EXPECT_EQ(t.bytes, 4);
    EXPECT_LE(t.arrival_ns, t.last_arrival_ns);
    EXPECT_LE(t.last_arrival_ns, t.end_ns);
    if (world.rank() == 0) {
      EXPECT_GE(t.last_arrival_ns - t.arrival_ns, 20'000'000);
    } else {
      EXPECT_EQ(t.arrival_ns, t.last_arrival_ns);
    }
  });
}

}  // namespace
}  // namespace drivetrain

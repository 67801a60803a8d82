// What every transport promises about collectives, on thread ranks with all paths: the handed cases, and random
// programs over overlapping groups. The same promises are tested between processes in shm_comm_test and world_mpi_test.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/comm/host_threads.h"
#include "runtime/comm/progress_comm.h"
#include "runtime/comm/thread_comm.h"
#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/random_program.h"

namespace drivetrain {
namespace {

TEST(Collectives, BigAndSmallTermsAddInAnyPlacement) {  // CO-10
  run_thread_ranks(8, [](Communicator& world) {
    for (int big = 0; big < 8; ++big)
      for (const std::int64_t count : {1, 5000}) {
        std::vector<bf16> x(static_cast<std::size_t>(count), bf16(world.rank() == big ? 256.0f : 1.0f));
        world.all_reduce(Tensor(x.data(), DType::kBF16, {count}), ReduceOp::kSum).wait();
        for (const bf16 v : x) ASSERT_EQ(static_cast<float>(v), 264.0f);  // 263 in f32, rounded once
        std::vector<float> y(static_cast<std::size_t>(count), world.rank() == big ? 256.0f : 1.0f);
        world.all_reduce(Tensor(y.data(), DType::kF32, {count}), ReduceOp::kSum).wait();
        for (const float v : y) ASSERT_EQ(v, 263.0f);
      }
  });
}

TEST(Collectives, SizesNotDivisibleByRanks) {  // CO-11
  run_thread_ranks(4, [](Communicator& world) {
    for (const std::int64_t count : {1, 2, 3, 5, 7, 73, 4099}) {
      std::vector<float> x(static_cast<std::size_t>(count), static_cast<float>(world.rank() + 1));
      world.all_reduce(Tensor(x.data(), DType::kF32, {count}), ReduceOp::kSum).wait();
      for (const float v : x) ASSERT_EQ(v, 10.0f);
    }
    // Shares are equal by contract; anything else is refused before it starts, with the sizes.
    std::array<float, 73> whole{};
    std::array<float, 19> part{};
    const Tensor all(whole.data(), DType::kF32, {73}), share(part.data(), DType::kF32, {19});
    const auto expect_refusal = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "not refused";
      } catch (const Error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("f32[73]"), std::string::npos) << text;
        EXPECT_NE(text.find("equal"), std::string::npos) << text;
      }
    };
    expect_refusal([&] { (void)world.reduce_scatter(share, all, ReduceOp::kSum); });
    expect_refusal([&] { (void)world.all_gather(all, share); });
    std::array<float, 73> other{};
    expect_refusal([&] { (void)world.all_to_all(Tensor(other.data(), DType::kF32, {73}), all); });
    world.barrier();
  });
}

TEST(Collectives, RootsAreNumberedInsideTheGroup) {  // CO-13
  run_thread_ranks(4, [](Communicator& world) {
    const auto value_from = [&](Communicator& group, int root) {
      auto x = static_cast<float>(world.rank());
      group.broadcast(Tensor(&x, DType::kF32, {1}), root).wait();
      return x;
    };
    const auto upper = world.split(world.rank() >= 2 ? 0 : -1, world.rank());
    if (upper) {
      EXPECT_EQ(value_from(*upper, 0), 2.0f);
      EXPECT_EQ(value_from(*upper, 1), 3.0f);
      float x = 0;
      EXPECT_THROW((void)upper->broadcast(Tensor(&x, DType::kF32, {1}), 2), Error);
      EXPECT_THROW((void)upper->broadcast(Tensor(&x, DType::kF32, {1}), -1), Error);
    }
    const auto odd = world.split(world.rank() % 2 == 1 ? 0 : -1, -world.rank());  // {3, 1}
    if (odd) {
      EXPECT_EQ(odd->rank(), world.rank() == 3 ? 0 : 1);
      EXPECT_EQ(value_from(*odd, 0), 3.0f);
      EXPECT_EQ(value_from(*odd, 1), 1.0f);
    }
  });
}

// Bits of everybody's result, compared with the fold in rank order.
template <class T>
void expect_bits_of_rank_order(int ranks, std::int64_t count, const HostOptions& options) {
  std::vector<std::vector<T>> inputs(static_cast<std::size_t>(ranks));
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal(0, 100);
  for (auto& x : inputs)
    for (std::int64_t i = 0; i < count; ++i) x.push_back(T(normal(random)));
  std::vector<T> expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    auto total = static_cast<float>(inputs[0][i]);
    for (std::size_t r = 1; r < inputs.size(); ++r) total += static_cast<float>(inputs[r][i]);
    expected.push_back(T(total));
  }
  run_host_threads(ranks, options, [&](Communicator& world) {
    auto x = inputs[static_cast<std::size_t>(world.rank())];
    world.all_reduce(Tensor(x.data(), DTypeOf<T>::value, {count}), ReduceOp::kSum).wait();
    EXPECT_EQ(std::memcmp(x.data(), expected.data(), x.size() * sizeof(T)), 0) << ranks << " ranks, " << count;
  });
}

TEST(Collectives, BitsAreThoseOfTheFoldInRankOrderOnEveryRank) {  // CO-16
  HostOptions direct, staged;
  direct.reach = HostOptions::Reach::kEverywhere;
  staged.staging_bytes = 4096;
  for (const int ranks : {1, 2, 3, 4})
    for (const std::int64_t count : {1, 63, 1000, 100003})
      for (const HostOptions& options : {direct, staged}) {
        expect_bits_of_rank_order<float>(ranks, count, options);
        expect_bits_of_rank_order<bf16>(ranks, count, options);
      }
}

TEST(Collectives, RandomProgramsOverOverlappingGroups) {
  HostOptions staged;
  staged.staging_bytes = 4096;
  run_thread_ranks(4, [](Communicator& world) { test::run_random_program(world, 300, 1); });
  run_thread_ranks(5, [](Communicator& world) { test::run_random_program(world, 200, 2); });
  run_host_threads(3, staged, [](Communicator& world) { test::run_random_program(world, 300, 3); });
  run_host_threads(
      3, {}, [](Communicator& world) { test::run_random_program(world, 300, 4, test::ProgramMemory::kSymmetric); });
}

TEST(Collectives, RandomProgramsInTheBackground) {
  HostOptions staged;
  staged.staging_bytes = 4096;
  constexpr std::size_t kMixed = 4096;  // small collectives by the caller, larger ones on the thread
  for (const std::size_t inline_bytes : {std::size_t{0}, kMixed}) {
    run_host_threads(3, staged, [&](Communicator& world) {
      ProgressCommunicator background(world.split(0, world.rank()), inline_bytes);
      test::run_random_program(background, 200, 6);
    });
    run_host_threads(4, {}, [&](Communicator& world) {
      ProgressCommunicator background(world.split(0, world.rank()), inline_bytes);
      test::run_random_program(background, 200, 7, test::ProgramMemory::kSymmetric);
    });
  }
}

TEST(Collectives, GroupsOfDifferentThreadsDoNotDisturbEachOther) {
  run_thread_ranks(2, [](Communicator& world) {
    const auto first = world.split(0, 0), second = world.split(0, 0);
    const auto work = [](Communicator& group) {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> x(3000, static_cast<float>(i));
        group.all_reduce(Tensor(x.data(), DType::kF32, {3000}), ReduceOp::kSum).wait();
        ASSERT_EQ(x[2999], static_cast<float>(2 * i));
      }
    };
    std::thread other([&] { work(*second); });
    work(*first);
    other.join();
  });
}

}  // namespace
}  // namespace drivetrain

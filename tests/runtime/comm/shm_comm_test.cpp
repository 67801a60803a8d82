// The shared-memory transport between processes: exactness, and what happens when one of them dies, stops or finds
// too little memory.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <thread>

#include "runtime/comm/shared_block.h"
#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/forked_ranks.h"
#include "tests/runtime/comm/host_memory_device.h"
#include "tests/runtime/comm/random_program.h"

namespace drivetrain {
namespace {

using test::ForkedRank;
using test::run_forked_ranks;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> names_in_shm() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("drivetrain.") && contains(name, "." + std::to_string(getpid()) + "."))
      names.push_back(name);
  }
  return names;
}

void expect_all_passed(const std::vector<ForkedRank>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r)
    EXPECT_TRUE(ranks[r].passed && !ranks[r].killed) << "rank " << r << ": " << ranks[r].error;
}

class ShmRanks : public testing::TestWithParam<int> {};

// Ordinary memory once through the kernel, once through windows of staging memory.
TEST_P(ShmRanks, OrdinaryMemoryIsExactHoweverItIsRead) {
  HostOptions copied, staged;
  copied.copy_from_bytes = 0;
  staged.copy_from_bytes = std::numeric_limits<std::size_t>::max();
  for (const HostOptions& options : {copied, staged})
    expect_all_passed(run_forked_ranks(GetParam(), options, [](Communicator& world) {
      std::vector<std::byte> memory(test::workspace_bytes(world.size(), 300007));
      test::Workspace w{memory.data(), memory.size()};
      for (const std::int64_t count : {1025, 100003, 300007}) {
        test::check_every_collective<float>(world, w, count);
        test::check_every_collective<bf16>(world, w, count);
      }
      test::check_every_collective<std::uint8_t>(world, w, 100003);
    }));
}

TEST_P(ShmRanks, SymmetricAndOrdinaryMemoryMixWhenTheKernelReads) {
  HostOptions copied;
  copied.copy_from_bytes = 0;
  expect_all_passed(run_forked_ranks(GetParam(), copied, [](Communicator& world) {
    test::HostMemoryDevice device;
    const Buffer symmetric = world.symmetric_buffer(device, 400000);
    std::vector<float> ordinary(100000);
    float* x = world.rank() % 2 == 1 ? ordinary.data() : reinterpret_cast<float*>(symmetric.data());
    const Tensor t(x, DType::kF32, {100000});
    test::fill_samples<float>(t, world);
    world.all_reduce(t, ReduceOp::kSum).wait();
    test::expect_values<float>(t, "all_reduce",
                               [&](std::int64_t i) { return test::reduced<float>(i, world.size(), ReduceOp::kSum); });
  }));
}

// As in a container that forbids it.
void forbid_reading_other_processes() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST(ShmComm, OneRankThatMayNotReadItsPeersMakesAllStage) {
  HostOptions copied;
  copied.copy_from_bytes = 0;
  expect_all_passed(run_forked_ranks(3, copied, [](Communicator& world) {
    if (world.rank() == 1) forbid_reading_other_processes();
    std::vector<std::byte> memory(test::workspace_bytes(world.size(), 100003));
    test::Workspace w{memory.data(), memory.size()};
    test::check_every_collective<float>(world, w, 100003);
  }));
}

TEST_P(ShmRanks, EveryCollectiveIsExactInOrdinaryAndSymmetricMemory) {
  expect_all_passed(run_forked_ranks(GetParam(), {}, [](Communicator& world) {
    EXPECT_EQ(world.transport(), "shm");
    test::HostMemoryDevice device;
    std::vector<std::byte> memory(test::workspace_bytes(world.size(), 100003));
    test::Workspace ordinary{memory.data(), memory.size()};
    const Buffer buffer = world.symmetric_buffer(device, memory.size());
    test::Workspace symmetric{buffer.data(), buffer.bytes()};
    for (test::Workspace* w : {&ordinary, &symmetric}) {
      test::check_grid(world, *w, 31);
      test::check_every_collective<float>(world, *w, 100003);
      test::check_every_collective<bf16>(world, *w, 100003);
    }
  }));
}

TEST_P(ShmRanks, RandomProgramOverOverlappingGroups) {
  if (GetParam() == 1) return;
  expect_all_passed(
      run_forked_ranks(GetParam(), {}, [](Communicator& world) { test::run_random_program(world, 300, 5); }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ShmRanks, testing::Values(1, 2, 3, 4));

TEST(ShmComm, NamesAreGoneOnceEverybodyHasJoined) {
  expect_all_passed(run_forked_ranks(2, {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const auto group = world.split(0, 0);
    const Buffer buffer = group->symmetric_buffer(device, 100000);
    world.barrier();
    EXPECT_TRUE(names_in_shm().empty());
  }));
  EXPECT_TRUE(names_in_shm().empty());
}

TEST(ShmComm, TwoJobsAtOnceDoNotMeet) {
  std::array<pid_t, 2> jobs{};
  for (pid_t& job : jobs) {
    job = fork();
    if (job != 0) continue;
    const auto ranks = run_forked_ranks(2, {}, [](Communicator& world) {
      for (int i = 0; i < 200; ++i) {
        float x = static_cast<float>(i);
        world.all_reduce(Tensor(&x, DType::kF32, {1}), ReduceOp::kSum).wait();
        EXPECT_EQ(x, static_cast<float>(2 * i));
      }
    });
    _exit(ranks[0].passed && ranks[1].passed ? 0 : 1);
  }
  for (const pid_t job : jobs) {
    int status = 1;
    EXPECT_EQ(waitpid(job, &status, 0), job);
    EXPECT_EQ(status, 0);
  }
}

TEST(ShmComm, AKilledRankIsNoticedAndNamedByAllItsPeers) {
  const auto ranks = run_forked_ranks(3, {}, [](Communicator& world) {
    world.barrier();
    if (world.rank() == 1) raise(SIGKILL);
    std::array<float, 3> x{};
    world.all_reduce(Tensor(x.data(), DType::kF32, {3}), ReduceOp::kSum).wait();
  });
  EXPECT_TRUE(ranks[1].killed);
  for (const std::size_t r : {0u, 2u}) {
    EXPECT_EQ(ranks[r].kind, ErrorKind::kComm);
    EXPECT_TRUE(contains(ranks[r].error, "rank 1 (host ") && contains(ranks[r].error, "gone")) << ranks[r].error;
    EXPECT_TRUE(contains(ranks[r].error, "all_reduce(f32[3], sum) #3")) << ranks[r].error;
    EXPECT_LT(ranks[r].seconds, 5);
  }
}

TEST(ShmComm, ARankKilledWhileItsMemoryIsInUseIsNoticed) {
  const auto ranks = run_forked_ranks(2, {}, [](Communicator& world) {
    test::HostMemoryDevice device;
    const Buffer buffer = world.symmetric_buffer(device, 1 << 20);
    for (int i = 0;; ++i) {
      if (world.rank() == 1 && i == 20) raise(SIGKILL);
      world.all_reduce(buffer.tensor(DType::kF32), ReduceOp::kMax).wait();
    }
  });
  EXPECT_TRUE(contains(ranks[0].error, "rank 1") && contains(ranks[0].error, "gone")) << ranks[0].error;
  EXPECT_LT(ranks[0].seconds, 5);
}

TEST(ShmComm, TheDeadlineSaysThatARankIsStopped) {
  HostOptions options;
  options.timeout = std::chrono::milliseconds(500);
  const auto ranks = run_forked_ranks(3, options, [](Communicator& world) {
    world.barrier();
    if (world.rank() == 2) raise(SIGSTOP);
    world.barrier();
  });
  for (const std::size_t r : {0u, 1u}) {
    EXPECT_EQ(ranks[r].kind, ErrorKind::kHang);
    EXPECT_TRUE(contains(ranks[r].error, "rank 2 (host ") && contains(ranks[r].error, "stopped")) << ranks[r].error;
    EXPECT_TRUE(contains(ranks[r].error, "last call barrier() #2 in the world of 3 ranks, done 0."))
        << ranks[r].error;
    EXPECT_LT(ranks[r].seconds, 5);
  }
}

TEST(ShmComm, MismatchedMessagesRaise) {
  HostOptions options;
  options.timeout = std::chrono::seconds(5);
  const auto ranks = run_forked_ranks(2, options, [](Communicator& world) {
    std::array<float, 8> x{};
    if (world.rank() == 0) {
      world.send(Tensor(x.data(), DType::kF32, {8}), 1).wait();
      world.barrier();
    } else {
      world.recv(Tensor(x.data(), DType::kF32, {4}), 0).wait();
    }
  });
  for (const ForkedRank& rank : ranks)
    EXPECT_TRUE(contains(rank.error, "send(f32[8], to 1)") && contains(rank.error, "recv(f32[4], from 0)"))
        << rank.error;
}

TEST(ShmBlocks, LeftoversOfKilledProcessesAreRemovedOthersStay) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    BlockTicket ticket;
    const SharedBlock block = make_shm_blocks()->create(4096, ticket);
    static_cast<void>(write(ready[1], ticket.bytes.data(), ticket.bytes.size()));
    pause();
    _exit(0);
  }
  BlockTicket theirs, ours;
  ASSERT_EQ(read(ready[0], theirs.bytes.data(), theirs.bytes.size()), static_cast<ssize_t>(theirs.bytes.size()));
  const auto blocks = make_shm_blocks();
  const SharedBlock block = blocks->create(4096, ours);
  remove_shm_leftovers();
  EXPECT_TRUE(blocks->open(theirs, 4096).data && blocks->open(ours, 4096).data);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  remove_shm_leftovers();
  EXPECT_THROW(blocks->open(theirs, 4096), Error);
  EXPECT_TRUE(blocks->open(ours, 4096).data);
  blocks->seal(ours);
}

// In a mount namespace of its own with a /dev/shm of one megabyte.
TEST(ShmComm, TooLittleSharedMemoryIsAClearErrorOnAllRanks) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kNoPermission = 77;
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") != 0)
      _exit(kNoPermission);
    const auto ranks = run_forked_ranks(2, {}, [](Communicator& world) {
      test::HostMemoryDevice device;
      const Buffer buffer = world.symmetric_buffer(device, 8 << 20);
    });
    for (const ForkedRank& rank : ranks) {
      EXPECT_EQ(rank.kind, ErrorKind::kPreflight);
      EXPECT_TRUE(contains(rank.error, "/dev/shm is too small: 8388608 bytes of a block of 16777216")) << rank.error;
      EXPECT_TRUE(contains(rank.error, "--shm-size")) << rank.error;
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace drivetrain

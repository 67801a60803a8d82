#include "tests/mpi/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "runtime/comm/world_of_session.h"

namespace drivetrain::test {
namespace {

std::unique_ptr<Communicator>& world_slot() {
  static std::unique_ptr<Communicator> world;
  return world;
}

// "--transport shm|mpi|auto", "--progress on" (off otherwise: on this machine `auto` must not decide what is tested) and "--ranks-per-host N" (blocks of ranks stand for hosts) are ours, the rest is
// GoogleTest's.
std::string option(int argc, char** argv, const std::string& key) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == key) return argv[i + 1];
  return "";
}

std::unique_ptr<Communicator> open(int argc, char** argv) {
  CommOptions options;
  options.timeout = std::chrono::seconds(60);
  const std::string transport = option(argc, argv, "--transport"), block = option(argc, argv, "--ranks-per-host");
  if (transport == "shm") options.transport = Transport::kShm;
  if (transport == "mpi") options.transport = Transport::kMpi;
  options.progress = option(argc, argv, "--progress") == "on" ? ProgressThread::kOn : ProgressThread::kOff;
  if (block.empty()) return open_world(options);
  return open_world_of(std::make_shared<MpiSession>(std::stoi(block)), options);
}

// A failed rank must not leave its peers in a collective of the next test.
class EndJobOnFailure final : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Failed()) return;
    std::fprintf(stderr, "rank %d failed %s.%s\n", mpi_test_world().rank(), info.test_suite_name(), info.name());
    std::fflush(stderr);
    abort_world(1);
  }
};

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    world_slot() = open(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "cannot open the world: %s\n", error.what());
    abort_world(1);
  }
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (mpi_test_world().rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new EndJobOnFailure);
  const int code = RUN_ALL_TESTS();
  world_slot().reset();
  return code;
}

}  // namespace

Communicator& mpi_test_world() {
  return *world_slot();
}

}  // namespace drivetrain::test

int main(int argc, char** argv) {
  return drivetrain::test::run(argc, argv);
}

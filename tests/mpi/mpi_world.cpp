#include "tests/mpi/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "runtime/comm/world.h"

namespace drivetrain::test {
namespace {

std::unique_ptr<Communicator>& world_slot() {
  static std::unique_ptr<Communicator> world;
  return world;
}

// "--transport shm|mpi|auto" is ours, the rest is GoogleTest's.
Transport transport_of(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) != "--transport") continue;
    const std::string value = argv[i + 1];
    return value == "shm" ? Transport::kShm : value == "mpi" ? Transport::kMpi : Transport::kAuto;
  }
  return Transport::kAuto;
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
  CommOptions options;
  options.transport = transport_of(argc, argv);
  options.timeout = std::chrono::seconds(60);
  try {
    world_slot() = open_world(options);
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

// A job with a fault, for tests under mpirun: prints what each rank is told and ends as main() does after an error.
// fault_probe mismatch|kill|stop|abort [--transport shm|mpi] [--ranks-per-host N]
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/world_of_session.h"

namespace drivetrain {
namespace {

void commit_fault(Communicator& world, const std::string& fault) {
  std::vector<float> x(5000);
  const int culprit = world.size() - 1;
  world.barrier();
  if (world.rank() == culprit && fault == "kill") raise(SIGKILL);
  if (world.rank() == culprit && fault == "stop") raise(SIGSTOP);
  if (world.rank() == culprit && fault == "abort") throw Error(ErrorKind::kNumeric, "the loss is not a number");
  const std::int64_t count = world.rank() == culprit && fault == "mismatch" ? 4000 : 5000;
  world.all_reduce(Tensor(x.data(), DType::kF32, {count}), ReduceOp::kSum).wait();
}

std::string option(int argc, char** argv, const std::string& key) {
  for (int i = 2; i + 1 < argc; ++i)
    if (argv[i] == key) return argv[i + 1];
  return "";
}

int run(int argc, char** argv) {
  std::signal(SIGTERM, SIG_IGN);  // mpirun's way of ending a job with a dead rank; a second is left to speak
  CommOptions options;
  options.timeout = std::chrono::seconds(std::string(argv[1]) == "stop" ? 3 : 20);
  if (option(argc, argv, "--transport") == "mpi") options.transport = Transport::kMpi;
  const std::string block = option(argc, argv, "--ranks-per-host");
  std::unique_ptr<Communicator> world;
  int rank = -1;
  try {
    world =
        block.empty() ? open_world(options) : open_world_of(std::make_shared<MpiSession>(std::stoi(block)), options);
    rank = world->rank();
    commit_fault(*world, argv[1]);
  } catch (const Error& error) {
    if (world) world->abort("rank " + std::to_string(rank) + " failed: " + error.what());
    std::fprintf(stderr, "[rank %d told: %s]\n", rank, error.what());
    std::fflush(stderr);
    // The cause leaves its victims time to speak, the victims leave the cause time to end the job with its own code.
    std::this_thread::sleep_for(std::chrono::seconds(error.kind() == ErrorKind::kComm ? 4 : 1));
    abort_world(error.exit_code());
  }
  return 0;
}

}  // namespace
}  // namespace drivetrain

int main(int argc, char** argv) {
  return argc < 2 ? 64 : drivetrain::run(argc, argv);
}

// A job with a fault, for tests under mpirun: prints what each rank is told and ends as main() does after an error.
// fault_probe FAULT [--transport shm|mpi] [--ranks-per-host N] [--check off] [--recorder FOLDER] [--seconds S]
//   mismatch, differ, split, allocate, meet, message: the last rank calls something else
//   kill, stop, abort: the last rank dies, is stopped, fails; kill-busy: while the others compute for three seconds
//   init: the last rank never joins; budget: a checkpoint's deadline; none: S seconds of checked all-reduces
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/world_of_session.h"
#include "tests/runtime/comm/host_memory_device.h"

namespace drivetrain {
namespace {

// Another call than the all-reduce of the others.
void call_differently(Communicator& world, const std::string& fault, const Tensor& x) {
  test::HostMemoryDevice device;
  if (fault == "mismatch") world.all_reduce(x.flat(0, 4000), ReduceOp::kSum).wait();
  if (fault == "differ") world.all_reduce(x, ReduceOp::kMax).wait();
  if (fault == "split") static_cast<void>(world.split(0, 0));
  if (fault == "allocate") static_cast<void>(world.symmetric_buffer(device, 1000));
  if (fault == "meet") world.barrier();
}

void exchange_messages(Communicator& world, const Tensor& x) {
  const int culprit = world.size() - 1;
  if (world.rank() == culprit - 1) world.send(x, culprit).wait();
  if (world.rank() == culprit) world.recv(x.flat(0, 4000), culprit - 1).wait();
  world.barrier();
}

void add_for(Communicator& world, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<float> x(300000);
  std::int32_t go_on = 1;
  std::int64_t rounds = 0;
  for (; go_on; ++rounds) {
    const auto mine = static_cast<float>(world.rank() + rounds % 7);
    std::fill(x.begin(), x.end(), mine);
    world.all_reduce(Tensor(x.data(), DType::kF32, {300000}), ReduceOp::kSum).wait();
    const auto n = static_cast<float>(world.size());
    for (const float v : x)
      if (v != n * (n - 1) / 2 + n * static_cast<float>(rounds % 7))
        throw Error(ErrorKind::kLogic, "a wrong sum: " + std::to_string(v));
    if (rounds == 0) std::fprintf(stderr, "[rank %d has begun]\n", world.rank());
    go_on = std::chrono::steady_clock::now() < end;
    world.broadcast(Tensor(&go_on, DType::kI32, {1}), 0).wait();
  }
  std::fprintf(stderr, "[rank %d: %lld right sums over %s]\n", world.rank(), static_cast<long long>(rounds),
               world.transport().c_str());
}

void commit_fault(Communicator& world, const std::string& fault, double seconds) {
  std::vector<float> data(5000);
  const Tensor x(data.data(), DType::kF32, {5000});
  const bool culprit = world.rank() == world.size() - 1;
  if (fault == "none") return add_for(world, seconds);
  if (fault == "message") return exchange_messages(world, x);
  if (fault == "budget") {
    const DeadlineScope deadline(world, {std::chrono::milliseconds(1500), "comm.checkpoint_timeout_s"});
    if (culprit) std::this_thread::sleep_for(std::chrono::seconds(12));
    return world.barrier();
  }
  world.barrier();
  if (fault == "kill-busy") {
    if (culprit) raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    if (world.rank() == 0) return world.barrier();
    return std::this_thread::sleep_for(std::chrono::seconds(10));
  }
  if (culprit && fault == "kill") raise(SIGKILL);
  if (culprit && fault == "stop") raise(SIGSTOP);
  if (culprit && fault == "abort") throw Error(ErrorKind::kNumeric, "the loss is not a number");
  if (culprit && fault != "kill" && fault != "stop") return call_differently(world, fault, x);
  world.all_reduce(x, ReduceOp::kSum).wait();
  std::fprintf(stderr, "[rank %d: met]\n", world.rank());
}

std::string option(int argc, char** argv, const std::string& key) {
  for (int i = 2; i + 1 < argc; ++i)
    if (argv[i] == key) return argv[i + 1];
  return "";
}

int run(int argc, char** argv) {
  std::signal(SIGTERM, SIG_IGN);  // mpirun's way of ending a job with a dead rank; a second is left to speak
  CommOptions options;
  const std::string fault = argv[1], seconds = option(argc, argv, "--seconds");
  options.timeout = std::chrono::seconds(fault == "stop" ? 3 : fault == "none" ? 5 : 20);
  options.init_timeout = std::chrono::seconds(fault == "init" ? 3 : 60);
  options.check = option(argc, argv, "--check") != "off";
  options.recorder_folder = option(argc, argv, "--recorder");
  if (fault == "init" && process_place().world_rank == process_place().world_size - 1)
    std::this_thread::sleep_for(std::chrono::seconds(20));
  if (option(argc, argv, "--transport") == "mpi") options.transport = Transport::kMpi;
  const std::string block = option(argc, argv, "--ranks-per-host");
  std::unique_ptr<Communicator> world;
  int rank = -1;
  try {
    world =
        block.empty() ? open_world(options) : open_world_of(std::make_shared<MpiSession>(std::stoi(block)), options);
    rank = world->rank();
    commit_fault(*world, fault, seconds.empty() ? 1 : std::stod(seconds));
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

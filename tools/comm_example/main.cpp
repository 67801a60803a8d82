// Data-parallel descent with drivetrain::comm: each rank sees targets of its own, all end with weights at their mean.
//   comm_example                 one rank
//   mpirun -np 4 comm_example    four processes
//   comm_example --threads 4     four threads of one process
// --fail RANK makes that rank throw in the fourth step, to see how the others learn of it.
#include <drivetrain/kernels/host_memory.h>
#include <drivetrain/runtime/comm/thread_comm.h>
#include <drivetrain/runtime/comm/world.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drivetrain;

namespace {

constexpr std::int64_t kWeights = 1 << 18;
constexpr int kSteps = 12;

// Targets differ by rank; their mean over the ranks is i % 7.
float target(std::int64_t i, const Communicator& world) {
  return static_cast<float>(i % 7) + static_cast<float>(2 * world.rank() - world.size() + 1);
}

void descend(Communicator& world, int failing_rank) {
  // Symmetric memory is reached by the peers where it lies; ordinary memory works too, with a copy.
  HostMemory memory;
  const Buffer buffer = world.symmetric_buffer(memory, kWeights * sizeof(float));
  const Tensor gradient = buffer.tensor(DType::kF32);
  std::vector<float> weights(kWeights, 0.0f);

  for (int step = 1; step <= kSteps; ++step) {
    if (step == 4 && world.rank() == failing_rank) throw std::runtime_error("this rank was told to fail");
    // The later layer's gradient travels while the earlier one is computed, as in a backward pass.
    std::array<Work, 2> works;
    for (const int layer : {1, 0}) {
      const std::int64_t begin = layer * kWeights / 2;
      const Tensor part = gradient.flat(begin, kWeights / 2);
      for (std::int64_t i = 0; i < part.count(); ++i)
        part.as<float>()[i] = weights[static_cast<std::size_t>(begin + i)] - target(begin + i, world);
      works[static_cast<std::size_t>(layer)] = world.all_reduce(part, ReduceOp::kAverage);
    }
    for (Work& work : works) work.wait();  // throws what went wrong, on any rank
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.9f * gradient.as<float>()[i];
  }

  float worst = 0;
  for (std::int64_t i = 0; i < kWeights; ++i)
    worst = std::max(worst, std::abs(weights[static_cast<std::size_t>(i)] - static_cast<float>(i % 7)));
  world.all_reduce(Tensor(&worst, DType::kF32, {1}), ReduceOp::kMax).wait();

  // Groups: even and odd ranks, numbered from 0 inside each.
  const auto group = world.split(world.rank() % 2, world.rank());
  std::int32_t members = 1;
  group->all_reduce(Tensor(&members, DType::kI32, {1}), ReduceOp::kSum).wait();
  if (world.rank() == 0)
    std::printf("%d ranks over %s: weights at the mean of their targets: %s; %d even ranks\n", world.size(),
                world.transport().c_str(), worst < 1e-5f ? "yes" : "no", members);
}

// The value after `key` on the command line, or `otherwise`.
int option(int argc, char** argv, const std::string& key, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == key) return std::atoi(argv[i + 1]);
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = option(argc, argv, "--threads", 0), failing_rank = option(argc, argv, "--fail", -1);
  std::unique_ptr<Communicator> world;
  try {
    if (threads > 0) {
      run_thread_ranks(threads, [&](Communicator& rank) { descend(rank, failing_rank); });
      return 0;
    }
    world = open_world({});
    descend(*world, failing_rank);
    return 0;  // the world is closed on the way out, together with the peers
  } catch (const std::exception& e) {
    std::fprintf(stderr, "comm_example: %s\n", e.what());
    // Wakes the peers with the reason; then ends this process without waiting for any of them.
    if (world) world->abort("rank " + std::to_string(world->rank()) + " failed: " + e.what());
    abort_world(1);
  }
}

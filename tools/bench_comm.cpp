// Collectives of the world against MPI's own on the same buffers in the same run: all-reduce, all-gather and
// reduce-scatter of f32 and bf16, from 8 bytes to --max bytes. Run under mpirun:
//   mpirun -np 2 --bind-to none bench_comm [--max BYTES] [--memory symmetric|ordinary]
// Bytes are those of the whole tensor (the gathered or the not yet scattered one). Times are those of the slowest rank,
// median over the repetitions; ours and MPI's alternate. ratio = MPI's time / ours. Bus bandwidth = bytes / time *
// 2 (n - 1) / n for all-reduce, (n - 1) / n for the others: what each rank must at least send.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "runtime/comm/mpi_baseline.h"
#include "runtime/comm/world.h"

namespace drivetrain {
namespace {

using Clock = std::chrono::steady_clock;

struct Buffers {
  Tensor whole, part;
};

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// Seconds of one call on the slowest rank. The owner has just written its data, as in real use: what peers read is not
// in their caches.
double slowest(Communicator& world, const Buffers& b, const std::function<void()>& call) {
  for (const Tensor& x : {b.whole, b.part}) std::fill_n(x.data, x.bytes(), std::byte{0});
  world.barrier();
  const auto start = Clock::now();
  call();
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  world.all_reduce(Tensor(&seconds, DType::kF64, {1}), ReduceOp::kMax).wait();
  return seconds;
}

int repetitions(std::size_t bytes) {
  return bytes <= (1u << 16) ? 60 : bytes <= (1u << 22) ? 20 : 7;
}

void compare(Communicator& world, const std::string& op, const Buffers& b, const std::function<void()>& ours,
             const std::function<void()>& theirs) {
  std::vector<double> our_times, their_times;
  const std::size_t bytes = b.whole.bytes();
  for (int i = -2; i < repetitions(bytes); ++i) {
    const double our_time = slowest(world, b, ours), their_time = slowest(world, b, theirs);
    if (i < 0) continue;
    our_times.push_back(our_time);
    their_times.push_back(their_time);
  }
  if (world.rank() != 0) return;
  const double us = median(our_times), n = world.size();
  const double factor = (op == "all_reduce" ? 2 : 1) * (n - 1) / n;
  std::printf("%-15s %-5s %10zu  %10.1f  %10.1f  %6.2f  %7.2f\n", op.c_str(), name(b.whole.dtype), bytes, us * 1e6,
              median(their_times) * 1e6, median(their_times) / us, static_cast<double>(bytes) / us / 1e9 * factor);
  std::fflush(stdout);
}

void sweep(Communicator& world, MpiBaseline& mpi, std::byte* memory, DType dtype, std::size_t max_bytes) {
  for (std::size_t bytes = 8; bytes <= max_bytes; bytes *= 8) {
    const auto n = static_cast<std::int64_t>(world.size());
    const auto share = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / size_of(dtype)) / n);
    const Buffers b{Tensor(memory, dtype, {share * n}), Tensor(memory + max_bytes + 64, dtype, {share})};
    compare(
        world, "all_reduce", b, [&] { world.all_reduce(b.whole, ReduceOp::kSum).wait(); },
        [&] { mpi.all_reduce(b.whole); });
    compare(
        world, "all_gather", b, [&] { world.all_gather(b.whole, b.part).wait(); },
        [&] { mpi.all_gather(b.whole, b.part); });
    compare(
        world, "reduce_scatter", b, [&] { world.reduce_scatter(b.part, b.whole, ReduceOp::kSum).wait(); },
        [&] { mpi.reduce_scatter(b.part, b.whole); });
  }
}

std::string option(int argc, char** argv, const std::string& key, const std::string& otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == key) return argv[i + 1];
  return otherwise;
}

void run(int argc, char** argv) {
  const std::size_t max_bytes = std::stoull(option(argc, argv, "--max", "67108864"));
  const bool symmetric = option(argc, argv, "--memory", "symmetric") == "symmetric";
  const auto world = open_world({});
  if (world->transport() == "self")
    throw Error(ErrorKind::kUsage, "run bench_comm under mpirun with two ranks or more");
  const auto device = make_cpu_device(1);
  const std::size_t room = 2 * max_bytes + 4096;
  const Buffer buffer = symmetric ? world->symmetric_buffer(*device, room) : Buffer(*device, room);
  std::memset(buffer.data(), 0, room);
  MpiBaseline mpi;
  if (world->rank() == 0)
    std::printf("transport %s, %d ranks, %s memory\n%-15s %-5s %10s  %10s  %10s  %6s  %7s\n",
                world->transport().c_str(), world->size(), symmetric ? "symmetric" : "ordinary", "op", "dtype",
                "bytes", "ours us", "MPI us", "ratio", "bus GB/s");
  for (const DType dtype : {DType::kF32, DType::kBF16}) sweep(*world, mpi, buffer.data(), dtype, max_bytes);
}

}  // namespace
}  // namespace drivetrain

int main(int argc, char** argv) {
  try {
    drivetrain::run(argc, argv);
  } catch (const drivetrain::Error& error) {
    std::fprintf(stderr, "bench_comm: %s\n", error.what());
    drivetrain::abort_world(error.exit_code());
  }
}

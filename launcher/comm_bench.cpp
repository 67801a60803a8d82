#include "launcher/comm_bench.h"

#include <algorithm>
#include <chrono>

#include "kernels/cpu/memory_stream.h"

namespace drivetrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBackToBackSamples = 5;
constexpr int kMostPlaces =
    8;  // of the stream: a reduction reads as many as there are ranks, but prefetchers follow few
// Below, caches hold much of the data and memory bounds nothing.
constexpr std::size_t kLargeBytes = std::size_t{16} << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double BenchRow::stream_bytes_per_s() const {
  return stream ? 2.0 * ranks * static_cast<double>(what.bytes()) / stream->median : 0;
}

double BenchRow::ceiling_share() const {
  if (!stream) return 0;
  const double traffic = memory_traffic_bytes(what.op, what.placing, ranks, static_cast<double>(what.bytes()));
  return traffic / seconds.median / stream_bytes_per_s();
}

CommBench::CommBench(Communicator& world, const BenchRequest& request, std::span<std::byte> memory, MpiBaseline* mpi,
                     Floor floor)
    : world_(world), request_(request), memory_(memory), mpi_(mpi), floor_(floor) {}

CommBench::Operands CommBench::operands_of(const BenchCase& what) const {
  const Tensor whole(memory_.data(), what.dtype, {what.count});
  const std::int64_t n = world_.size();
  const auto second = [&](std::int64_t count) {
    const std::size_t at = (whole.bytes() + 63) / 64 * 64;
    return Tensor(memory_.data() + at, what.dtype, {count});
  };
  const Tensor slice = has_shares(what.op) ? whole.flat(world_.rank() * (what.count / n), what.count / n) : Tensor{};
  const bool in_place = what.placing == Placing::kInPlace;
  switch (what.op) {
    case BenchOp::kAllGather:
      return {in_place ? slice : second(what.count / n), whole, whole};
    case BenchOp::kReduceScatter: {
      const Tensor out = in_place ? slice : second(what.count / n);
      return {whole, out, in_place ? Tensor{} : out};
    }
    case BenchOp::kAllToAll:
    case BenchOp::kSendRecv: {
      const Tensor out = second(what.count);
      return {whole, out, out};
    }
    case BenchOp::kBroadcast:
      return {whole, whole, world_.rank() == 0 ? Tensor{} : whole};
    case BenchOp::kBarrier:
      return {};
    default:
      return {whole, whole, Tensor{}};
  }
}

void CommBench::write_input(const BenchCase& what, const Operands& x, const BenchPattern& pattern) const {
  if (x.poisoned.present()) BenchPattern::poison(x.poisoned);
  const bool receives_only = what.op == BenchOp::kBroadcast && world_.rank() != 0;
  if (x.in.present() && !receives_only) pattern.fill(x.in, world_.rank());
}

void CommBench::call(const BenchCase& what, const Operands& x) {
  switch (what.op) {
    case BenchOp::kAllReduce:
      return world_.all_reduce(x.out, what.reduce).wait();
    case BenchOp::kReduceScatter:
      return world_.reduce_scatter(x.out, x.in, what.reduce).wait();
    case BenchOp::kAllGather:
      return world_.all_gather(x.out, x.in).wait();
    case BenchOp::kBroadcast:
      return world_.broadcast(x.out, 0).wait();
    case BenchOp::kReduce:
      return world_.reduce(x.out, 0, what.reduce).wait();
    case BenchOp::kAllToAll:
      return world_.all_to_all(x.out, x.in).wait();
    case BenchOp::kBarrier:
      return world_.barrier();
    case BenchOp::kSendRecv: {
      const int n = world_.size(), me = world_.rank();
      Work sent = world_.send(x.in, (me + 1) % n);
      world_.recv(x.out, (me + n - 1) % n).wait();
      return sent.wait();
    }
  }
}

void CommBench::call_mpi(const BenchCase& what, const Operands& x) {
  switch (what.op) {
    case BenchOp::kAllReduce:
      return mpi_->all_reduce(x.out, what.reduce);
    case BenchOp::kReduceScatter:
      return mpi_->reduce_scatter(x.out, x.in, what.reduce);
    case BenchOp::kAllGather:
      return mpi_->all_gather(x.out, x.in);
    case BenchOp::kBroadcast:
      return mpi_->broadcast(x.out, 0);
    case BenchOp::kReduce:
      return mpi_->reduce(x.out, 0, what.reduce);
    case BenchOp::kAllToAll:
      return mpi_->all_to_all(x.out, x.in);
    case BenchOp::kBarrier:
      return mpi_->barrier();
    case BenchOp::kSendRecv:
      return mpi_->send_recv(x.out, x.in);
  }
}

std::int64_t CommBench::count_wrong(const BenchCase& what, const Operands& x, const BenchPattern& pattern) const {
  const int n = world_.size(), me = world_.rank();
  const std::int64_t share = what.count / n;
  std::int64_t wrong = 0;
  switch (what.op) {
    case BenchOp::kAllReduce:
      return pattern.wrong_reduction(x.out, 0);
    case BenchOp::kReduce:
      return me == 0 ? pattern.wrong_reduction(x.out, 0) : 0;
    case BenchOp::kReduceScatter:
      return pattern.wrong_reduction(x.out, me * share);
    case BenchOp::kAllGather:
      for (int r = 0; r < n; ++r) wrong += pattern.wrong_input(x.out.flat(r * share, share), r, 0);
      return wrong;
    case BenchOp::kAllToAll:
      for (int r = 0; r < n; ++r) wrong += pattern.wrong_input(x.out.flat(r * share, share), r, me * share);
      return wrong;
    case BenchOp::kBroadcast:
      return pattern.wrong_input(x.out, 0, 0);
    case BenchOp::kSendRecv:
      return pattern.wrong_input(x.out, (me + n - 1) % n, 0);
    case BenchOp::kBarrier:
      return 0;
  }
  return 0;
}

Spread CommBench::slowest(std::vector<double> seconds) {
  const auto count = static_cast<std::int64_t>(seconds.size());
  world_.all_reduce(Tensor(seconds.data(), DType::kF64, {count}), ReduceOp::kMax).wait();
  return spread_of(std::move(seconds));
}

BenchRow CommBench::measure(const BenchCase& what) {
  BenchRow row;
  row.what = what;
  row.ranks = world_.size();
  const bool single = request_.timing == BenchRequest::Timing::kSingle;
  const bool checked = request_.check == BenchRequest::Check::kOn;
  row.iterations = iterations_for(request_, what.bytes());
  const BenchPattern pattern(what.op, what.dtype, what.reduce, world_.size());
  const Operands x = operands_of(what);
  Operands theirs = x;
  // MPI_IN_PLACE leaves the result of a reduce-scatter in the first share.
  if (what.op == BenchOp::kReduceScatter && what.placing == Placing::kInPlace)
    theirs.out = x.in.flat(0, what.count / world_.size());

  // Seconds of one of `calls` calls after the owner has written its data, as in use: peers find it in no cache.
  const auto sample = [&](const Operands& o, std::int64_t& wrong, int calls, const auto& run) {
    write_input(what, o, pattern);
    world_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) run(what, o);
    const double seconds = seconds_since(start) / calls;
    if (checked && calls == 1) wrong += count_wrong(what, o, pattern);
    return seconds;
  };
  const auto ours = [&](int calls) {
    return sample(x, row.wrong, calls, [&](const BenchCase& c, const Operands& o) { call(c, o); });
  };
  const auto mpis = [&](int calls) {
    return sample(theirs, row.mpi_wrong, calls, [&](const BenchCase& c, const Operands& o) { call_mpi(c, o); });
  };
  const auto stream = [&] {
    const Tensor whole(memory_.data(), what.dtype, {what.count});
    pattern.fill(whole, world_.rank());
    world_.barrier();
    const auto start = Clock::now();
    cpu::stream_through({whole.data, whole.bytes()}, static_cast<std::size_t>(std::min(world_.size(), kMostPlaces)));
    return seconds_since(start);
  };

  const bool bounded = floor_ == Floor::kMeasured && what.bytes() >= kLargeBytes;
  std::vector<double> our_times, mpi_times, stream_times;
  const int first = single ? -request_.warmup : -std::max(1, request_.warmup);  // at least one is checked
  const int samples = single ? row.iterations : kBackToBackSamples;
  for (int i = first; i < samples; ++i) {
    const int calls = single || i < 0 ? 1 : row.iterations;
    const double our_time = ours(calls), mpi_time = mpi_ != nullptr ? mpis(calls) : 0;
    const double stream_time = bounded ? stream() : 0;
    if (i < 0) continue;
    our_times.push_back(our_time);
    if (mpi_ != nullptr) mpi_times.push_back(mpi_time);
    if (bounded) stream_times.push_back(stream_time);
  }
  row.seconds = slowest(our_times);
  if (mpi_ != nullptr) row.mpi = slowest(mpi_times);
  if (bounded) row.stream = slowest(stream_times);
  std::int64_t wrong[2] = {row.wrong, row.mpi_wrong};
  world_.all_reduce(Tensor(wrong, DType::kI64, {2}), ReduceOp::kSum).wait();
  row.wrong = wrong[0];
  row.mpi_wrong = wrong[1];
  return row;
}

}  // namespace drivetrain

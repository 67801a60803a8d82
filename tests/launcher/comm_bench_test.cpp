// The measurement and its checker, over threads: right results count as right for every operation and type, and a
// communicator that spoils one element is caught.
#include "launcher/comm_bench.h"

#include <gtest/gtest.h>

#include <mutex>

#include "launcher/comm_bench_report.h"
#include "runtime/comm/thread_comm.h"

namespace drivetrain {
namespace {

// Passes everything on, and spoils the last element of every large result on rank 1.
class FaultyCommunicator final : public Communicator {
 public:
  explicit FaultyCommunicator(Communicator& right) : right_(right) {}
  int rank() const override { return right_.rank(); }
  int size() const override { return right_.size(); }
  std::string transport() const override { return right_.transport(); }
  Work all_reduce(Tensor x, ReduceOp op) override { return spoiled(right_.all_reduce(x, op), x); }
  Work all_gather(Tensor out, Tensor in) override { return spoiled(right_.all_gather(out, in), out); }
  Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) override {
    return spoiled(right_.reduce_scatter(out, in, op), out);
  }
  Work broadcast(Tensor x, int root) override { return spoiled(right_.broadcast(x, root), x); }
  Work reduce(Tensor x, int root, ReduceOp op) override { return spoiled(right_.reduce(x, root, op), x); }
  Work all_to_all(Tensor out, Tensor in) override { return spoiled(right_.all_to_all(out, in), out); }
  Work send(Tensor x, int to) override { return right_.send(x, to); }
  Work recv(Tensor x, int from) override { return spoiled(right_.recv(x, from), x); }
  void barrier() override { right_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override { return right_.split(color, key); }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override {
    return right_.symmetric_buffer(device, bytes);
  }
  Deadline set_deadline(Deadline deadline) override { return right_.set_deadline(deadline); }
  void abort(const std::string& reason) noexcept override { right_.abort(reason); }

 private:
  // The bench's own sums are small and in f64 or i64: left alone.
  Work spoiled(Work work, const Tensor& x) {
    work.wait();
    const bool at = rank() == spoils && x.dtype != DType::kF64 && x.dtype != DType::kI64;
    if (at) x.data[x.bytes() - 1] ^= std::byte{1};
    return work;
  }
  Communicator& right_;

 public:
  int spoils = 1;
};

BenchRequest request(const std::string& ops, const std::string& dtypes, ReduceOp reduce) {
  BenchRequest r;
  r.ops = parse_ops(ops);
  r.dtypes = parse_dtypes(dtypes);
  r.reduce = reduce;
  r.placings = {Placing::kInPlace, Placing::kOutOfPlace};
  r.sizes = {.begin = 8, .end = 128 << 10, .factor = 128};  // inline, one window, several periods of the pattern
  r.iterations = 2;
  r.warmup = 1;
  return r;
}

// Rank 0's rows.
template <class Wrap>
std::vector<BenchRow> run(int ranks, const BenchRequest& r, const Wrap& wrap) {
  std::vector<BenchRow> rows;
  run_thread_ranks(ranks, [&](Communicator& right) {
    const std::vector<BenchCase> cases = cases_of(r, ranks);
    std::vector<std::byte> memory(memory_of(cases, ranks));
    auto&& world = wrap(right);
    CommBench bench(world, r, memory, nullptr, CommBench::Floor::kMeasured);
    for (const BenchCase& one : cases) {
      const BenchRow row = bench.measure(one);
      if (right.rank() == 0) rows.push_back(row);
    }
  });
  return rows;
}

Communicator& as_it_is(Communicator& world) {
  return world;
}

std::string label(const BenchRow& row) {
  return std::string(name(row.what.op)) + " " + name(row.what.dtype) + " " + name(row.what.placing) + " " +
         std::to_string(row.what.count);
}

TEST(CommBench, RightResultsCountAsRight) {
  for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAverage}) {
    for (const int ranks : {2, 3, 7}) {
      const auto rows = run(ranks, request("all", "all", reduce), as_it_is);
      EXPECT_EQ(rows.size(), 9u * 7 * 3 + 1);
      for (const BenchRow& row : rows) EXPECT_EQ(row.wrong, 0) << label(row) << " of " << ranks;
    }
  }
}

TEST(CommBench, OneSpoiledElementIsCountedInEveryCall) {
  const auto rows = run(3, request("all", "f32,bf16,i32,u8", ReduceOp::kSum),
                        [](Communicator& right) { return FaultyCommunicator(right); });
  for (const BenchRow& row : rows) {
    const bool unseen = row.what.op == BenchOp::kBarrier || row.what.op == BenchOp::kReduce;  // rank 1 is no root
    EXPECT_EQ(row.wrong, unseen ? 0 : 3) << label(row);  // a warm-up and two timed calls
  }
}

TEST(CommBench, TheRootOfAReductionIsChecked) {
  const auto rows = run(2, request("reduce", "f32", ReduceOp::kMax), [](Communicator& right) {
    FaultyCommunicator faulty(right);
    faulty.spoils = 0;
    return faulty;
  });
  for (const BenchRow& row : rows) EXPECT_EQ(row.wrong, 3) << label(row);
}

TEST(CommBench, APatternShiftedByAnElementOrARankIsWrong) {
  for (const int ranks : {2, 3, 4, 7}) {
    const BenchPattern pattern(BenchOp::kAllReduce, DType::kF32, ReduceOp::kSum, ranks);
    const BenchPattern one_more(BenchOp::kAllReduce, DType::kF32, ReduceOp::kSum, ranks + 1);
    std::vector<float> sums(1000), input(1000);
    const Tensor sum(sums.data(), DType::kF32, {1000}), in(input.data(), DType::kF32, {1000});
    for (int r = 0; r < ranks; ++r) {
      pattern.fill(in, r);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += input[i];
      EXPECT_EQ(pattern.wrong_input(in, r, 0), 0);
      EXPECT_GT(pattern.wrong_input(in, r, 1), 600);
      EXPECT_GT(pattern.wrong_input(in, r + 1, 0), 600);
    }
    EXPECT_EQ(pattern.wrong_reduction(sum, 0), 0);
    for (const std::int64_t shift : {1, 64, 1024}) EXPECT_GT(pattern.wrong_reduction(sum, shift), 600) << shift;
    EXPECT_GT(one_more.wrong_reduction(sum, 0), 600);
  }
}

TEST(CommBench, BackToBackChecksAtLeastOneCall) {
  BenchRequest r = request("all_reduce", "f32", ReduceOp::kSum);
  r.timing = BenchRequest::Timing::kBackToBack;
  r.warmup = 0;
  for (const BenchRow& row : run(2, r, as_it_is)) EXPECT_EQ(row.wrong, 0);
  for (const BenchRow& row : run(2, r, [](Communicator& right) { return FaultyCommunicator(right); }))
    EXPECT_EQ(row.wrong, 1);
}

TEST(CommBench, UncheckedRunsCountNothing) {
  BenchRequest r = request("all_reduce", "f32", ReduceOp::kSum);
  r.check = BenchRequest::Check::kOff;
  for (const BenchRow& row : run(2, r, [](Communicator& right) { return FaultyCommunicator(right); }))
    EXPECT_EQ(row.wrong, 0);
}

TEST(CommBench, LargeRowsAreComparedWithAStreamThroughMemory) {
  BenchRequest r = request("all_reduce,reduce_scatter", "bf16", ReduceOp::kSum);
  r.sizes = {.begin = 8 << 20, .end = 16 << 20, .factor = 2};
  for (const BenchRow& row : run(2, r, as_it_is)) {
    EXPECT_EQ(row.stream.has_value(), row.what.bytes() == 16 << 20);
    EXPECT_EQ(row.wrong, 0);
  }
}

TEST(CommBench, TheCeilingIsTheTimeOfTheBytesThatMustMove) {
  BenchRow row;
  row.what = {BenchOp::kAllReduce, DType::kF32, ReduceOp::kSum, Placing::kInPlace, 25};
  row.ranks = 4;
  row.seconds.median = 2;
  row.stream.emplace().median = 1;  // 4 ranks read and write 100 bytes each
  EXPECT_DOUBLE_EQ(row.stream_bytes_per_s(), 800);
  EXPECT_DOUBLE_EQ(row.ceiling_share(), 0.5);
  row.what.op = BenchOp::kReduceScatter;  // 500 of 800 bytes
  EXPECT_DOUBLE_EQ(row.ceiling_share(), 0.3125);
}

TEST(CommBench, RowsAsJsonHaveTheFieldsThatScriptsRead) {
  BenchRow row;
  row.what = {BenchOp::kAllReduce, DType::kF32, ReduceOp::kSum, Placing::kInPlace, 250'000'000};
  row.ranks = 4;
  row.seconds = {1.0, 0.5, 1.5, 0.25, 2.0};
  row.mpi = Spread{3.0, 3.0, 3.0, 3.0, 3.0};
  const auto json = row_json(row);
  EXPECT_EQ(json["op"], "all_reduce");
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_EQ(json["reduce"], "sum");
  EXPECT_EQ(json["bytes"], 1'000'000'000);
  EXPECT_EQ(json["count"], 250'000'000);
  EXPECT_EQ(json["in_place"], true);
  EXPECT_DOUBLE_EQ(json["time_us"], 1e6);
  EXPECT_DOUBLE_EQ(json["min_us"], 0.25e6);
  EXPECT_DOUBLE_EQ(json["max_us"], 2e6);
  EXPECT_DOUBLE_EQ(json["algbw_gbps"], 1.0);
  EXPECT_DOUBLE_EQ(json["busbw_gbps"], 1.5);  // CO-19
  EXPECT_EQ(json["wrong"], 0);
  EXPECT_DOUBLE_EQ(json["mpi_time_us"], 3e6);
  EXPECT_DOUBLE_EQ(json["ratio"], 3.0);
}

TEST(CommBench, TablesFitAHundredColumns) {
  BenchRequest r = request("all_reduce", "f32", ReduceOp::kSum);
  r.against = BenchRequest::Against::kMpi;
  BenchFacts facts;
  facts.place.sites.assign(64, {"a-rather-long-host-name-01", 0, "eth0"});
  facts.place.transport = "hierarchical";
  facts.place.reason = "auto: hosts with equally many ranks each";
  facts.mpi = {"Open MPI v4.1.4", "default", {}};
  BenchRow row;
  row.what = {BenchOp::kReduceScatter, DType::kBF16, ReduceOp::kAverage, Placing::kOutOfPlace, 8'000'000'000};
  row.ranks = 64;
  row.seconds = row.mpi.emplace(Spread{12.5, 12.5, 12.5, 12.5, 12.5});
  row.stream = row.seconds;
  std::istringstream text(header_text(r, facts) + block_text(r, row) + row_text(r, row));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace drivetrain

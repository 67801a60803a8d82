#include "launcher/comm_bench_request.h"

#include <gtest/gtest.h>

#include "kernels/error.h"

namespace drivetrain {
namespace {

BenchRequest request() {
  BenchRequest r;
  r.ops = {BenchOp::kAllReduce};
  r.dtypes = {DType::kF32};
  r.placings = {Placing::kInPlace, Placing::kOutOfPlace};
  return r;
}

// What the refusal says; "" when nothing is refused.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

std::string refusal_of(const BenchRequest& r) {
  return refusal([&] { check_request(r); });
}

testing::AssertionResult says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos
             ? testing::AssertionSuccess()
             : testing::AssertionFailure() << "'" << text << "' has no '" << part << "'";
}

TEST(BenchRequest, ReadsSizesInPowersOf1024) {
  EXPECT_EQ(parse_size("--end", "8"), 8u);
  EXPECT_EQ(parse_size("--end", "64K"), 65536u);
  EXPECT_EQ(parse_size("--end", "3m"), 3145728u);
  EXPECT_EQ(parse_size("--end", "2G"), 2147483648u);
  for (const char* wrong : {"", "M", "-8", "1.5M", "64X", "64KB", "1 K"})
    EXPECT_TRUE(says(refusal([&] { parse_size("--end", wrong); }), "--end")) << wrong;
  EXPECT_TRUE(says(refusal([] { parse_size("--end", "65T"); }), "64T"));
  EXPECT_TRUE(says(refusal([] { parse_size("--end", "99999999999999999999"); }), "64T"));
}

TEST(BenchRequest, NamesTheNearestWord) {
  EXPECT_TRUE(says(refusal([] { parse_ops("allreduce"); }), "--op allreduce: did you mean 'all_reduce'?"));
  EXPECT_TRUE(says(refusal([] { parse_ops("all_reduce,,reduce"); }), "Known are"));
  EXPECT_TRUE(says(refusal([] { parse_dtypes("bf61"); }), "did you mean 'bf16'?"));
  EXPECT_TRUE(says(refusal([] { parse_reduce("summ"); }), "did you mean 'sum'?"));
  EXPECT_TRUE(says(refusal([] { parse_transport("treads"); }), "did you mean 'threads'?"));
  EXPECT_TRUE(says(refusal([] { parse_transport("nccl"); }), "Known are auto, shm, mpi, hierarchical, threads"));
  EXPECT_TRUE(says(refusal([] { parse_placings("inplace"); }), "in, out or both"));
  EXPECT_EQ(parse_ops("all").size(), 8u);
  EXPECT_EQ(parse_ops("reduce,barrier"), (std::vector<BenchOp>{BenchOp::kReduce, BenchOp::kBarrier}));
}

TEST(BenchRequest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal_of(request()), "");
  BenchRequest r = request();
  r.sizes = {.begin = 16, .end = 8};
  EXPECT_TRUE(says(refusal_of(r), "--begin 16 is above --end 8"));
  r = request();
  r.sizes.begin = 0;
  EXPECT_TRUE(says(refusal_of(r), "--begin 0"));
  for (const double factor : {1.0, 0.5, -2.0, std::numeric_limits<double>::quiet_NaN()}) {
    r = request();
    r.sizes.factor = factor;
    EXPECT_TRUE(says(refusal_of(r), "--factor")) << factor;
  }
  r = request();
  r.sizes.step = 1;
  EXPECT_TRUE(says(refusal_of(r), "--step 1"));
  r.sizes = {.begin = 1, .end = std::size_t{64} << 30, .factor = 1.00000001};
  EXPECT_TRUE(says(refusal_of(r), "--factor 1 gives more than 10000 sizes"));
  r = request();
  r.warmup = -1;
  EXPECT_TRUE(says(refusal_of(r), "--warmup -1"));
  r = request();
  r.ops = {BenchOp::kBroadcast};
  r.reduce = ReduceOp::kMax;
  EXPECT_TRUE(says(refusal_of(r), "broadcast reduces nothing"));
  r = request();
  r.transport = BenchTransport::kThreads;
  r.against = BenchRequest::Against::kMpi;
  EXPECT_TRUE(says(refusal_of(r), "threads transport runs in one process without MPI"));
  r.against = BenchRequest::Against::kNothing;
  r.ranks_per_host = 2;
  EXPECT_TRUE(says(refusal_of(r), "--ranks-per-host"));
  r = request();
  r.against = BenchRequest::Against::kMpi;
  r.reduce = ReduceOp::kAverage;
  EXPECT_TRUE(says(refusal_of(r), "MPI has no average"));
}

std::vector<std::int64_t> counts(const BenchRequest& r, int ranks) {
  std::vector<std::int64_t> list;
  for (const BenchCase& one : cases_of(r, ranks)) list.push_back(one.count);
  return list;
}

TEST(BenchRequest, RoundsSizesToElementsAndEqualShares) {
  BenchRequest r = request();
  r.sizes = {.begin = 1, .end = 100, .factor = 10};
  EXPECT_EQ(counts(r, 3), (std::vector<std::int64_t>{1, 2, 25}));  // 1 byte: one element at least
  r.ops = {BenchOp::kAllToAll};
  EXPECT_EQ(counts(r, 3), (std::vector<std::int64_t>{3, 24}));  // 1 and 10 bytes come to the same
  r.ops = {BenchOp::kBarrier};
  r.dtypes = {DType::kF32, DType::kU8};
  EXPECT_EQ(counts(r, 3), (std::vector<std::int64_t>{0}));
  r = request();
  r.sizes = {.begin = 8, .end = 32, .step = 8};
  EXPECT_EQ(counts(r, 2), (std::vector<std::int64_t>{2, 4, 6, 8}));
  r.sizes = {.begin = 8, .end = 16, .factor = 1.01};  // grows by a byte at least
  EXPECT_EQ(counts(r, 2), (std::vector<std::int64_t>{2, 3, 4}));
}

TEST(BenchRequest, RunsThePlacingsThatAnOperationHas) {
  BenchRequest r = request();
  r.sizes = {.begin = 8, .end = 8};
  r.ops = parse_ops("all");
  EXPECT_EQ(cases_of(r, 2).size(), 10u);  // gather and scatter both ways, the six others one way
  r.placings = {Placing::kOutOfPlace};
  EXPECT_EQ(cases_of(r, 2).size(), 4u);
  r.ops = {BenchOp::kAllReduce};
  EXPECT_TRUE(says(refusal([&] { cases_of(r, 2); }), "all_reduce exists only in place"));
  r.ops = {BenchOp::kAllToAll};
  r.placings = {Placing::kInPlace};
  EXPECT_TRUE(says(refusal([&] { cases_of(r, 2); }), "all_to_all exists only out of place"));
}

TEST(BenchRequest, CountsTheBuffersOfTheLargestCase) {
  BenchRequest r = request();
  r.sizes = {.begin = 1024, .end = 4096};
  EXPECT_EQ(memory_of(cases_of(r, 4), 4), 4096u + 4096u);
  r.ops = {BenchOp::kAllGather};
  EXPECT_EQ(memory_of(cases_of(r, 4), 4), 4096u + 1024u + 4096u);
  r.ops = {BenchOp::kSendRecv};
  EXPECT_EQ(memory_of(cases_of(r, 4), 4), 2 * 4096u + 4096u);
}

}  // namespace
}  // namespace drivetrain

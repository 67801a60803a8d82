#include "runtime/comm/bench_math.h"

#include <gtest/gtest.h>

#include "kernels/error.h"

namespace drivetrain {
namespace {

double bus_gbps(BenchOp op) {
  return algorithm_gbps(1e9, 1.0) * bus_factor(op, 4);
}

// CO-19: n = 4, S = 1e9 bytes in all, t = 1 s.
TEST(BenchMath, BusBandwidthIsThatOfNcclTestsForTotalSizes) {
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kAllReduce), 1.5);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kAllGather), 0.75);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kReduceScatter), 0.75);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kAllToAll), 0.75);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kBroadcast), 1.0);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kReduce), 1.0);
  EXPECT_DOUBLE_EQ(bus_gbps(BenchOp::kSendRecv), 1.0);
}

TEST(BenchMath, BandwidthNeedsATime) {
  EXPECT_EQ(algorithm_gbps(0, 1), 0);
  EXPECT_THROW(algorithm_gbps(1, 0), Error);
}

TEST(BenchMath, TrafficCountsEachInputReadAndEachResultWrittenOnce) {
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kAllReduce, Placing::kInPlace, 4, 100), 800);
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kAllGather, Placing::kOutOfPlace, 4, 100), 800);
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kAllGather, Placing::kInPlace, 4, 100), 600);  // own slices stay
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kReduceScatter, Placing::kOutOfPlace, 4, 100), 500);
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kReduce, Placing::kInPlace, 4, 100), 500);
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kBroadcast, Placing::kInPlace, 4, 100), 600);
  EXPECT_EQ(memory_traffic_bytes(BenchOp::kBarrier, Placing::kInPlace, 4, 100), 0);
}

TEST(BenchMath, SpreadInterpolatesPercentiles) {
  const Spread odd = spread_of({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 5);
  EXPECT_DOUBLE_EQ(odd.p10, 1.4);
  EXPECT_DOUBLE_EQ(odd.p90, 4.6);
  EXPECT_EQ(spread_of({4, 1}).median, 2.5);
  EXPECT_EQ(spread_of({7}).p90, 7);
  EXPECT_THROW(spread_of({}), Error);
}

TEST(BenchMath, MedianDeviationIgnoresOneOutlier) {
  EXPECT_EQ(median_deviation({10, 11, 12, 13, 1000}), 1);
}

}  // namespace
}  // namespace drivetrain

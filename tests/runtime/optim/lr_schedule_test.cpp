#include "runtime/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drivetrain {
namespace {

using Kind = LrSchedule::Kind;

// TR-22: the first update is not wasted at rate 0, base is reached exactly by the last warm-up update.
TEST(LrSchedule, WarmsUpFromOneOverWAndReachesBaseExactly) {
  const LrSchedule s{.kind = Kind::kCosine, .base = 1e-3, .warmup = 10, .total = 110};
  EXPECT_DOUBLE_EQ(s.at(0), 1e-4);
  EXPECT_DOUBLE_EQ(s.at(4), 5e-4);
  EXPECT_EQ(s.at(9), 1e-3);
  for (int i = 0; i < 110; ++i) EXPECT_LE(s.at(i), 1e-3);
  EXPECT_LT(s.at(10), 1e-3);
}

// TR-07: ten updates from base to zero, by the update index alone.
TEST(LrSchedule, LinearGoesFromBaseToTheMinimumInclusive) {
  const LrSchedule s{.kind = Kind::kLinear, .base = 1e-3, .warmup = 0, .total = 10, .min_ratio = 0};
  EXPECT_EQ(s.at(0), 1e-3);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(s.at(i), 1e-3 * (9 - i) / 9, 1e-18) << i;
  EXPECT_EQ(s.at(9), 0);
  EXPECT_EQ(s.at(10), 0);
}

TEST(LrSchedule, CosineEndsAtMinRatioAndIsHalfWayInTheMiddle) {
  const LrSchedule s{.kind = Kind::kCosine, .base = 2.0, .warmup = 1, .total = 101, .min_ratio = 0.25};
  EXPECT_EQ(s.at(0), 2.0);
  EXPECT_NEAR(s.at(50), 2.0 * (0.25 + 0.75 * 0.5), 1e-12);
  EXPECT_EQ(s.at(100), 0.5);
  for (int i = 1; i < 101; ++i) EXPECT_LT(s.at(i), s.at(i - 1)) << i;
}

TEST(LrSchedule, WarmupStableDecayHoldsBaseThenDecaysLinearly) {
  const LrSchedule s{
      .kind = Kind::kWarmupStableDecay, .base = 1, .warmup = 10, .total = 100, .min_ratio = 0, .decay_fraction = 0.2};
  EXPECT_EQ(s.at(9), 1);
  EXPECT_EQ(s.at(79), 1);
  EXPECT_NEAR(s.at(80), 1 - 1.0 / 20, 1e-12);
  EXPECT_EQ(s.at(99), 0);
}

TEST(LrSchedule, ConstantStaysAtBaseAfterWarmup) {
  const LrSchedule s{.kind = Kind::kConstant, .base = 3e-4, .warmup = 2, .total = 5};
  EXPECT_DOUBLE_EQ(s.at(0), 1.5e-4);
  EXPECT_EQ(s.at(1), 3e-4);
  EXPECT_EQ(s.at(1000), 3e-4);
}

TEST(LrSchedule, WarmupLongerThanTheRunNeverExceedsBase) {
  const LrSchedule s{.kind = Kind::kLinear, .base = 1, .warmup = 10, .total = 5, .min_ratio = 0};
  for (int i = 0; i < 20; ++i) EXPECT_LE(s.at(i), 1) << i;
  const LrSchedule one{.kind = Kind::kCosine, .base = 1, .warmup = 0, .total = 1};
  EXPECT_EQ(one.at(0), 1);
}

}  // namespace
}  // namespace drivetrain

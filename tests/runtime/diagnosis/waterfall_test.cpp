#include "runtime/diagnosis/waterfall.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/diagnosis/straggler.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

// One rank, one step of 100 ms, by hand.
StepRecord step_by_hand() {
  StepRecord row;
  const auto put = [&](TimeClass c, double ms) {
    row.class_ns[static_cast<std::size_t>(c)] = static_cast<std::int64_t>(ms * 1e6);
  };
  row.wall_ns = 100'000'000;
  put(TimeClass::kDataWait, 4);
  put(TimeClass::kCopy, 1);
  put(TimeClass::kForward, 20);
  put(TimeClass::kBackward, 40);
  put(TimeClass::kRecompute, 6);
  put(TimeClass::kOptimizer, 5);
  put(TimeClass::kDpWait, 8);
  put(TimeClass::kDpTransfer, 7);
  put(TimeClass::kHostGap, 3);
  put(TimeClass::kCheckpoint, 2);
  put(TimeClass::kOther, 1);  // 3 ms are in no class
  row.axes[1].culprit = 1;
  row.axes[1].culprit_ns = 5'000'000;
  row.ops[0] = {.ns = 44'000'000, .flops = 66e9, .bytes = 1e9};  // gemm
  row.ops[2] = {.ns = 22'000'000, .flops = 1e9, .bytes = 4e9};   // norm
  return row;
}
const WaterfallRow& row_of(const Waterfall& w, Loss loss, int culprit = -1) {
  for (const WaterfallRow& r : w.rows)
    if (r.loss == loss && r.culprit == culprit) return r;
  throw std::runtime_error("no such row");
}
void expect_exact_sums(const Waterfall& w) {
  std::int64_t us = w.ideal_us, points = w.achieved_milli_points;
  for (const WaterfallRow& r : w.rows) {
    us += r.us;
    points += r.milli_points;
  }
  EXPECT_EQ(us, w.step_us);
  EXPECT_EQ(points, 100000);
}

TEST(Waterfall, ChargesEveryMillisecondOfAStepByHand) {
  const std::vector<StepRecord> rows{step_by_hand()};
  // 30 GFLOP of model at 1 TFLOP/s: 30 ms, MFU 30 %.
  const Waterfall w = waterfall({.ranks = {rows}}, 30e9, 1e12);
  EXPECT_EQ(w.step_us, 100000);
  EXPECT_EQ(w.ideal_us, 30000);
  EXPECT_EQ(w.achieved_milli_points, 30000);
  EXPECT_EQ(row_of(w, Loss::kMatrixBelowPeak).us, 10000);  // 60 ms x 2/3 - 30 ms
  EXPECT_EQ(row_of(w, Loss::kMemoryBound).us, 20000);
  EXPECT_EQ(row_of(w, Loss::kRecompute).us, 6000);
  EXPECT_EQ(row_of(w, Loss::kWaiting, 1).us, 5000);
  EXPECT_EQ(row_of(w, Loss::kWaiting, -1).us, 3000);
  EXPECT_EQ(row_of(w, Loss::kWaiting, 1).label(), "waiting for rank 1");
  EXPECT_EQ(row_of(w, Loss::kOther).us, 4000);  // one named, three residual
  EXPECT_EQ(row_of(w, Loss::kData).milli_points, 4000);
  expect_exact_sums(w);
}

TEST(Waterfall, SumsExactlyWhateverTheNumbers) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SyntheticJob job{.dp = seed % 2 ? 2 : 4, .tp = seed % 3 ? 1 : 2, .steps = 7, .seed = seed};
    job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 1, .amount = 7.77}};
    const SyntheticRun run = simulate(job);
    expect_exact_sums(waterfall(run.window(job), 1e9 * static_cast<double>(seed), 3.3e10));
    expect_exact_sums(waterfall(run.window(job), 0, std::nullopt));
  }
}

TEST(Waterfall, APeakThatIsTooLowShowsAsANegativeRow) {
  const std::vector<StepRecord> rows{step_by_hand()};
  const Waterfall w = waterfall({.ranks = {rows}}, 50e9, 1e12);
  EXPECT_EQ(row_of(w, Loss::kMatrixBelowPeak).us, -10000);
  expect_exact_sums(w);
}

TEST(Roofline, ClassesByIntensityAgainstTheMachine) {
  const std::vector<StepRecord> rows{step_by_hand()};
  // Balance 10 FLOPs a byte: the product (66) computes, the norm (0.25) moves.
  const std::vector<RooflineRow> roof = roofline({.ranks = {rows}}, 2e12, 2e11);
  ASSERT_EQ(roof.size(), 2U);
  EXPECT_EQ(roof[0].op, OpClass::kGemm);
  EXPECT_TRUE(roof[0].compute_bound);
  EXPECT_NEAR(roof[0].share_of_bound, 1.5e12 / 2e12, 1e-9);
  EXPECT_FALSE(roof[1].compute_bound);
  EXPECT_NEAR(roof[1].flops_per_byte, 0.25, 1e-12);
  EXPECT_NEAR(roof[1].share_of_bound, 4e9 / 0.022 / 2e11, 1e-9);
}

TEST(Changes, TheThreeMostWorthTryingNameTheirKeys) {
  const std::vector<StepRecord> rows{step_by_hand()};
  const Window window{.ranks = {rows}};
  const Waterfall w = waterfall(window, 30e9, 1e12);
  const std::vector<Change> changes = changes_to_try(w, {}, window, {.compute = "fp32", .reduce = "fp32"});
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].what, "precision.compute: bf16");
  EXPECT_NEAR(changes[0].gain_ms, 10, 1e-9);
  EXPECT_NEAR(*changes[0].mfu_points, 30.0 / 0.9 - 30, 1e-6);
  EXPECT_NE(changes[1].what.find("memory.recompute"), std::string::npos);
  EXPECT_NEAR(changes[1].gain_ms, 6, 1e-9);
  EXPECT_NE(changes[2].what.find("data.workers"), std::string::npos);
}

TEST(Changes, AStragglerComesWithItsReplayedCost) {
  SyntheticJob job{.steps = 20};
  job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 1, .amount = 50}};
  const SyntheticRun run = simulate(job);
  const Window window = run.window(job);
  const Diagnosis d = judge(window, {.data_workers = 0});
  const std::vector<Change> changes = changes_to_try(waterfall(window, 0, std::nullopt), d, window, {});
  ASSERT_FALSE(changes.empty());
  EXPECT_NEAR(changes[0].gain_ms, 50, 4);
  EXPECT_EQ(changes[0].why, "rank 1 data_wait");
  EXPECT_FALSE(changes[0].mfu_points.has_value());
  for (std::size_t i = 1; i < changes.size(); ++i) EXPECT_EQ(changes[i].what.find("data.workers"), std::string::npos);
}

}  // namespace
}  // namespace drivetrain

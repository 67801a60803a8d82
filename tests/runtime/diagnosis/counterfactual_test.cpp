#include "runtime/diagnosis/counterfactual.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/error.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

// The job and the same job, same noise, without the fault: the truth that a claimed gain is held against.
struct Pair {
  SyntheticJob job;
  SyntheticRun run;
  double truth_ms;
};
Pair with_and_without(SyntheticJob job) {
  SyntheticRun faulty = simulate(job);
  SyntheticJob healthy = job;
  healthy.faults.clear();
  const double truth = faulty.mean_step_ms - simulate(healthy).mean_step_ms;
  return {std::move(job), std::move(faulty), truth};
}
double claimed(const Pair& p, Repair repair, bool steady) {
  const Lateness late(p.run.window(p.job));
  return Counterfactual(late).gain(std::span(&repair, 1), steady);
}

struct Layout {
  int dp, tp;
};
class CounterfactualOnRows : public ::testing::TestWithParam<Layout> {};

TEST_P(CounterfactualOnRows, ClaimsTheGainThatRemovingTheFaultHas) {
  const auto [dp, tp] = GetParam();
  const struct {
    Kind kind;
    Signal signal;
    double amount;
  } faults[] = {{Kind::kData, Signal::kData, 8},         {Kind::kData, Signal::kData, 60},
                {Kind::kSlowClock, Signal::kSlow, 0.15}, {Kind::kHostSleep, Signal::kHost, 10},
                {Kind::kCopy, Signal::kCopy, 9},         {Kind::kStop, Signal::kTotal, 20}};
  for (const auto& f : faults) {
    SyntheticJob job{.dp = dp, .tp = tp, .steps = 50};
    job.faults = {{.kind = f.kind, .rank = dp * tp - 1, .amount = f.amount}};
    const Pair p = with_and_without(job);
    EXPECT_NEAR(claimed(p, {dp * tp - 1, f.signal}, true) / p.truth_ms, 1, 0.2)
        << "kind " << static_cast<int>(f.kind) << " of " << p.truth_ms << " ms";
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, CounterfactualOnRows,
                         ::testing::Values(Layout{2, 1}, Layout{4, 1}, Layout{1, 2}, Layout{2, 2}));

TEST(Counterfactual, AFaultOfEveryFifthStepCostsAFifth) {
  SyntheticJob job{.dp = 4, .steps = 50};
  job.faults = {{.kind = Kind::kHostSleep, .rank = 1, .amount = 50, .every = 5}};
  const Pair p = with_and_without(job);
  EXPECT_NEAR(p.truth_ms, 10, 1.5);
  EXPECT_NEAR(claimed(p, {1, Signal::kHost}, false) / p.truth_ms, 1, 0.2);
}

// Tokens 1.78 : 0.22: dealing them evenly gains 0.78 of a mean pass, not the whole excess over the other rank.
TEST(Counterfactual, UnequalWorkIsDealtEvenly) {
  SyntheticJob job{.steps = 50};
  job.faults = {{.kind = Kind::kMoreWork, .rank = 0, .amount = 0.78},
                {.kind = Kind::kMoreWork, .rank = 1, .amount = -0.78}};
  const Pair p = with_and_without(job);
  EXPECT_NEAR(claimed(p, {0, Signal::kLoad}, true) / p.truth_ms, 1, 0.1);
}

// The next-slowest rank caps the gain.
TEST(Counterfactual, TheSecondSlowestRankTakesOver) {
  SyntheticJob job{.dp = 4, .steps = 50};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 50}, {.kind = Kind::kData, .rank = 2, .amount = 30}};
  const SyntheticRun run = simulate(job);
  const Lateness late(run.window(job));
  const Counterfactual replay(late);
  const Repair first{1, Signal::kData}, second{2, Signal::kData};
  EXPECT_NEAR(replay.gain(std::vector{first}, true), 20, 2);
  EXPECT_NEAR(replay.gain(std::vector{second}, true), 0, 0.5);
  const double both = replay.gain(std::vector{first, second}, true);
  EXPECT_NEAR(both, 49, 3);
  const std::vector<double> parts = replay.parts(std::vector{first, second}, true);
  EXPECT_NEAR(parts[0] + parts[1], both, 1e-9);
  EXPECT_NEAR(parts[1], (both - 20) / 2, 2);  // Shapley: mean of 0 first and the rest last
}

TEST(Counterfactual, PartsSumToTheTotal) {
  SyntheticJob job{.dp = 2, .tp = 2, .steps = 30, .seed = 9};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 20},
                {.kind = Kind::kSlowClock, .rank = 1, .amount = 0.1},
                {.kind = Kind::kHostSleep, .rank = 2, .amount = 25},
                {.kind = Kind::kCopy, .rank = 3, .amount = 15}};
  const SyntheticRun run = simulate(job);
  const Lateness late(run.window(job));
  const Counterfactual replay(late);
  const std::vector<Repair> all{{1, Signal::kData}, {1, Signal::kSlow}, {2, Signal::kHost}, {3, Signal::kCopy}};
  const std::vector<double> parts = replay.parts(all, true);
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), replay.gain(all, true), 1e-9);
  EXPECT_THROW(replay.parts(std::vector<Repair>(9, all[0]), true), Error);
}

TEST(Counterfactual, AHealthyRankGainsNothing) {
  const SyntheticJob job{.dp = 4, .steps = 50};
  const SyntheticRun run = simulate(job);
  const Lateness late(run.window(job));
  for (int r = 0; r < 4; ++r)
    EXPECT_LT(Counterfactual(late).gain(std::vector{Repair{r, Signal::kTotal}}, true), 0.015 * run.mean_step_ms) << r;
}

// 512 -> 471 ms at 38.1 %: 41.4 %.
TEST(Counterfactual, MfuPointsAreThoseOfTheShorterStep) {
  EXPECT_NEAR(mfu_points_gained(0.381, 512, 41), 3.32, 0.01);
}

}  // namespace
}  // namespace drivetrain

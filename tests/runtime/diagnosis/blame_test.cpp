#include "runtime/diagnosis/blame.h"

#include <gtest/gtest.h>

#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

// One row per rank, written by hand.
struct Rows {
  std::vector<std::vector<StepRecord>> ranks;
  explicit Rows(std::size_t n) : ranks(n, std::vector<StepRecord>(1)) {}
  void waits(std::size_t rank, CommAxis axis, int culprit, double ms) {
    StepRecord& row = ranks[rank][0];
    const auto a = static_cast<std::size_t>(axis);
    row.class_ns[static_cast<std::size_t>(TimeClass::kTpWait) + 2 * a] = static_cast<std::int64_t>(ms * 1e6);
    row.axes[a].culprit = culprit;
    row.axes[a].culprit_ns = static_cast<std::int64_t>(ms * 1e6);
  }
  Window window(int dp, int tp) const { return {.dp = dp, .tp = tp, .ranks = common_steps(ranks)}; }
};

// 2 x 2: the example of the specification.
TEST(Blame, WalksThroughTheGroupsToLocalWork) {
  Rows rows(4);
  rows.waits(1, CommAxis::kDp, 3, 41);
  rows.waits(1, CommAxis::kTp, 0, 0.5);
  rows.waits(3, CommAxis::kTp, 2, 40);
  rows.waits(0, CommAxis::kDp, 2, 41);
  rows.waits(2, CommAxis::kDp, 0, 0.3);
  const auto path = blame_path(rows.window(2, 2), 1);
  ASSERT_EQ(path.size(), 2U);
  EXPECT_EQ(path.back().culprit, 2);
  EXPECT_EQ(
      to_text(path, "rank 2 data wait 40 ms"),
      "rank 1 waits 41.0 ms in the dp gradient reduction <- rank 3 came late <- its tp peer rank 2 came late <- "
      "rank 2 data wait 40 ms");
}

TEST(Blame, StopsAtARankWhoseWaitingIsSmallBesideItsLateness) {
  Rows rows(2);
  rows.waits(0, CommAxis::kDp, 1, 30);
  rows.waits(1, CommAxis::kWorld, 0, 14);
  const auto path = blame_path(rows.window(2, 1), 0);
  ASSERT_EQ(path.size(), 1U);
  EXPECT_EQ(path[0].culprit, 1);
}

// Two ranks that name each other must not be walked for ever.
TEST(Blame, EndsInACircle) {
  Rows rows(2);
  rows.waits(0, CommAxis::kDp, 1, 30);
  rows.waits(1, CommAxis::kWorld, 0, 30);
  EXPECT_EQ(blame_path(rows.window(2, 1), 0).size(), 1U);
}

TEST(Blame, IsEmptyWhenNobodyIsNamed) {
  Rows rows(2);
  EXPECT_TRUE(blame_path(rows.window(2, 1), 0).empty());
  EXPECT_EQ(to_text({}, "x"), "");
}

TEST(Blame, FindsThePlantedRankFromEverySide) {
  SyntheticJob job{.dp = 2, .tp = 2, .steps = 20};
  job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 2, .amount = 40}};
  const SyntheticRun run = simulate(job);
  for (const int from : {0, 1, 3}) {
    const auto path = blame_path(run.window(job), from);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path.back().culprit, 2) << "from " << from;
  }
}

}  // namespace
}  // namespace drivetrain

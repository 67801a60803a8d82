#include "runtime/diagnosis/findings.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace drivetrain {
namespace {

// Steps of 100 ms on four ranks; data waits as given, in ms, for the late rank, 1 +- 0.05 for the others.
struct Rows {
  std::vector<std::vector<StepRecord>> ranks{4};
  explicit Rows(const std::vector<double>& late, std::size_t late_rank = 1) {
    std::mt19937_64 random(17);
    std::normal_distribution<double> noise(0, 0.05);
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t s = 0; s < late.size(); ++s) set(r, s, (r == late_rank ? late[s] : 0) + 1 + noise(random));
  }
  void set(std::size_t rank, std::size_t step, double data_ms) {
    if (step == ranks[rank].size()) ranks[rank].emplace_back();
    StepRecord& row = ranks[rank][step];
    row.step = static_cast<std::int64_t>(step);
    row.wall_ns = 100'000'000;
    row.class_ns = {};
    row.class_ns[static_cast<std::size_t>(TimeClass::kDataWait)] = static_cast<std::int64_t>(data_ms * 1e6);
    row.class_ns[static_cast<std::size_t>(TimeClass::kDpWait)] = static_cast<std::int64_t>((40 - data_ms) * 1e6);
  }
  Lateness lateness() const { return Lateness({.dp = 4, .tp = 1, .ranks = common_steps(ranks)}); }
  std::vector<Finding> found() const {
    std::vector<Finding> data;
    for (Finding& f : significant_lateness(lateness(), 100, 0.01))
      if (f.signal == Signal::kData) data.push_back(std::move(f));
    return data;
  }
};
std::vector<double> late_in(const std::set<std::size_t>& steps, double ms, std::size_t count = 20) {
  std::vector<double> late(count, 0);
  for (const std::size_t s : steps) late[s] = ms;
  return late;
}

TEST(Findings, NothingInNoise) {
  EXPECT_TRUE(Rows(std::vector<double>(20, 0)).found().empty());
}

TEST(Findings, SteadyInEveryStep) {
  const auto found = Rows(std::vector<double>(20, 5)).found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].pattern, Pattern::kSteady);
  EXPECT_NEAR(found[0].excess_ms, 5, 0.1);
  EXPECT_EQ(found[0].affected.size(), 20U);
  EXPECT_LT(found[0].p, 1e-6);
}

// 11 of 20 steps without order: the median says "always", the steps say "now and then".
TEST(Findings, MoreThanHalfIsNotAlways) {
  const auto found = Rows(late_in({0, 1, 3, 5, 6, 9, 10, 12, 15, 16, 18}, 10)).found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pattern, Pattern::kOccasional);
  EXPECT_EQ(found[0].affected.size(), 11U);
}

TEST(Findings, EqualDistancesArePeriodicEvenWhenFew) {
  const auto found = Rows(late_in({3, 8, 13, 18}, 20)).found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pattern, Pattern::kPeriodic);
  EXPECT_EQ(found[0].period, 5);
  // As many without order may be chance.
  EXPECT_TRUE(Rows(late_in({3, 4, 13, 17}, 20)).found().empty());
}

TEST(Findings, AFaultThatBeganInsideTheWindowIsSteadySinceThen) {
  auto late = late_in({4}, 10);  // a pause before
  for (std::size_t s = 11; s < 20; ++s) late[s] = 10;
  const auto found = Rows(late).found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pattern, Pattern::kSteady);
  EXPECT_EQ(found[0].onset, 11U);
}

TEST(Findings, PausesOfChangingRanksNeedMoreThanOneRank) {
  Rows rows(late_in({2, 5, 6, 11, 17}, 20));
  EXPECT_TRUE(changing_rank_pauses(rows.lateness(), 100).affected.empty());
  rows.set(2, 3, 21);
  rows.set(3, 9, 21);
  const Finding f = changing_rank_pauses(rows.lateness(), 100);
  EXPECT_EQ(f.affected.size(), 7U);
  EXPECT_LT(f.p, 0.01);
}

// The announced effect is found, half of it is not always.
TEST(Findings, TheDetectableEffectIsDetected) {
  const double effect = detectable_ms(Rows(std::vector<double>(40, 0)).lateness(), 0.01);
  EXPECT_GT(effect, 0);
  EXPECT_LT(effect, 0.2);
  EXPECT_EQ(Rows(std::vector<double>(40, 1.5 * effect)).found().size(), 1U);
}

}  // namespace
}  // namespace drivetrain

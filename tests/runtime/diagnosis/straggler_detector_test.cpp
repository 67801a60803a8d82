#include "runtime/diagnosis/straggler_detector.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

// Looks every five steps at the last twenty; `see` gets the number of steps run and the diagnosis.
template <class See>
void watch(const SyntheticJob& job, See&& see) {
  const SyntheticRun run = simulate(job);
  StragglerDetector detector;
  for (std::size_t end = kOnlineSteps; end <= static_cast<std::size_t>(job.steps); end += 5)
    see(end, detector.observe(run.window(job, end - kOnlineSteps, kOnlineSteps)));
}

TEST(StragglerDetector, NamesALateFaultWithinTwentySteps) {
  for (const Kind kind : {Kind::kData, Kind::kHostSleep, Kind::kCopy}) {
    SyntheticJob job{.dp = 4, .steps = 80};
    job.faults = {{.kind = kind, .rank = 2, .amount = 8, .from = 40}};
    std::size_t named_at = 0;
    watch(job, [&](std::size_t end, const Diagnosis& d) {
      if (d.verdicts.empty()) return;
      if (named_at == 0) named_at = end;
      EXPECT_EQ(d.verdicts[0].rank, 2);
      EXPECT_GE(d.verdicts[0].first_step, 38);
      EXPECT_LE(d.verdicts[0].first_step, 42);
      EXPECT_EQ(d.verdicts[0].pattern, Pattern::kSteady);
    });
    EXPECT_GT(named_at, 40U);
    EXPECT_LE(named_at, 60U);
  }
}

// The onset stays known after it left the window, and looks in a row are counted.
TEST(StragglerDetector, RemembersSinceWhenAndHowTheRankWasBefore) {
  SyntheticJob job{.steps = 120, .drift = 0};
  job.faults = {{.kind = Kind::kSlowClock, .rank = 1, .amount = 0.2, .from = 40}};
  SyntheticRun run = simulate(job);
  for (auto& rows : run.ranks)  // nobody recorded whom it waited for
    for (StepRecord& row : rows) row.axes = {};
  StragglerDetector detector;
  Diagnosis last;
  for (std::size_t end = kOnlineSteps; end <= 120; end += 5) last = detector.observe(run.window(job, end - 20, 20));
  ASSERT_EQ(last.verdicts.size(), 1U);
  const Verdict& v = last.verdicts[0];
  EXPECT_EQ(v.rank, 1);
  EXPECT_NEAR(static_cast<double>(v.first_step), 40, 2);
  EXPECT_GE(v.times_seen, 12);
  const auto own = [](const std::string& e) { return e.rfind("its own work took 9", 0) == 0; };
  EXPECT_TRUE(std::any_of(v.evidence.begin(), v.evidence.end(), own)) << v.evidence.back();
  const double alone = judge(run.window(job, 100, 20)).verdicts.at(0).confidence;
  EXPECT_NEAR(v.confidence, (1 + alone) / 2, 1e-9);
  EXPECT_LT(alone, 0.9);
}

TEST(StragglerDetector, ForgetsWhatPassed) {
  SyntheticJob job{.dp = 2, .steps = 60};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 20, .every = 1}};
  const SyntheticRun sick = simulate(job);
  job.faults.clear();
  const SyntheticRun well = simulate(job);
  StragglerDetector detector;
  EXPECT_EQ(detector.observe(sick.window(job, 0, 20)).verdicts.at(0).times_seen, 1);
  EXPECT_EQ(detector.observe(sick.window(job, 5, 20)).verdicts.at(0).times_seen, 2);
  EXPECT_TRUE(detector.observe(well.window(job, 20, 20)).verdicts.empty());
  EXPECT_EQ(detector.observe(sick.window(job, 30, 20)).verdicts.at(0).times_seen, 1);
}

// Over hundreds of steps, each window alone shows nothing.
TEST(StragglerDetector, ACommonCreepIsANoteAndNoVerdict) {
  bool noted = false;
  watch({.dp = 4, .steps = 200, .drift = 0.001}, [&](std::size_t, const Diagnosis& d) {
    EXPECT_TRUE(d.verdicts.empty());
    noted |= !d.notes.empty();
  });
  EXPECT_TRUE(noted);
}

// Twenty healthy jobs of 200 steps, 37 looks each.
TEST(StragglerDetector, HealthyJobsHaveNoVerdict) {
  int verdicts = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    watch({.dp = seed % 2 ? 2 : 4, .tp = seed % 3 ? 1 : 2, .steps = 200, .seed = seed},
          [&](std::size_t, const Diagnosis& d) { verdicts += !d.verdicts.empty(); });
  EXPECT_EQ(verdicts, 0);
}

}  // namespace
}  // namespace drivetrain

#include "runtime/diagnosis/straggler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/error.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

Diagnosis judged(const SyntheticJob& job, const RunFacts& facts = {}) {
  const SyntheticRun run = simulate(job);
  return judge(run.window(job), facts);
}
bool has(const std::vector<std::string>& evidence, const std::string& text) {
  return std::any_of(evidence.begin(), evidence.end(),
                     [&](const std::string& e) { return e.find(text) != std::string::npos; });
}

TEST(Straggler, AnswersTheQuestionInOneSentence) {
  SyntheticJob job{.steps = 30, .data_ms = 4};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 306}};
  const Diagnosis d = judged(job, {.data_workers = 0, .mfu = 0.2});
  ASSERT_EQ(d.verdicts.size(), 1U);
  const std::string line = first_line(d);
  EXPECT_NE(line.find("rank 0 is busy 9"), std::string::npos) << line;
  EXPECT_NE(
      line.find("of that is spinning in the dp gradient reduction, waiting for rank 1; rank 1 reads its data 310 "
                "ms per step (others 4.0 ms): raise data.workers from 0"),
      std::string::npos)
      << line;
  const Verdict& v = d.verdicts[0];
  EXPECT_EQ(v.phase, TimeClass::kDataWait);
  EXPECT_GT(v.confidence, 0.95);
  EXPECT_NEAR(v.cost_ms, 306, 15);
  EXPECT_NEAR(*v.mfu_points, 100 * 0.2 * v.cost_ms / (d.step_ms - v.cost_ms), 0.5);
  EXPECT_NE(v.blame.find("rank 0 waits"), std::string::npos) << v.blame;
}

TEST(Straggler, SaysSoWhenThereIsNone) {
  const Diagnosis d = judged({.dp = 4, .steps = 50});
  EXPECT_TRUE(d.verdicts.empty());
  EXPECT_GT(d.detectable_ms, 0);
  EXPECT_LT(d.detectable_ms, 0.05 * d.step_ms);
  EXPECT_EQ(first_line(d).rfind("no straggler in 50 steps", 0), 0U) << first_line(d);
}

// ST-04: 512 against 64 tokens per sample is unequal work, never a slow device.
TEST(Straggler, LengthsThatDifferAreUnequalWork) {
  SyntheticJob job{.steps = 20};
  const double mean = (512 + 64) / 2.0;
  job.faults = {{.kind = Kind::kMoreWork, .rank = 0, .amount = 512 / mean - 1},
                {.kind = Kind::kMoreWork, .rank = 1, .amount = 64 / mean - 1}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 0);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kUnequalWork);
  EXPECT_TRUE(has(d.verdicts[0].evidence, "8.0:1, max/mean 1.78")) << d.verdicts[0].evidence[1];
}

// Without counted FLOPs, tokens are the work.
TEST(Straggler, TokensStandInForFlops) {
  SyntheticJob job{.dp = 4, .steps = 20};
  job.faults = {{.kind = Kind::kMoreWork, .rank = 3, .amount = 0.5}};
  SyntheticRun run = simulate(job);
  for (auto& rows : run.ranks)
    for (StepRecord& row : rows) row.ops = {};
  const Diagnosis d = judge(run.window(job));
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 3);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kUnequalWork);
}

// A machine that everybody shares: steps scatter by a third, the halves of the window by 12 %. That is chance.
TEST(Straggler, AWindowOfWildStepsIsNoCommonChange) {
  const double walls[] = {90,  140, 70,  120, 95, 160, 80,  110, 100, 105,
                          110, 75,  150, 115, 85, 170, 130, 90,  112, 118};
  std::vector<std::vector<StepRecord>> rows(2);
  for (std::size_t s = 0; s < 20; ++s)
    for (auto& rank : rows) {
      StepRecord row;
      row.step = static_cast<std::int64_t>(s);
      row.wall_ns = static_cast<std::int64_t>(walls[s] * 1e6);
      rank.push_back(row);
    }
  const Diagnosis d = judge({.dp = 2, .tp = 1, .ranks = common_steps(rows)});
  EXPECT_TRUE(d.notes.empty()) << d.notes[0];
  EXPECT_TRUE(d.verdicts.empty());
}

TEST(Straggler, TellsMoreWorkAndASlowDeviceApartOnOneRank) {
  SyntheticJob job{.dp = 4, .steps = 30};
  job.faults = {{.kind = Kind::kMoreWork, .rank = 2, .amount = 0.3},
                {.kind = Kind::kSlowClock, .rank = 2, .amount = 0.2}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 2U);
  std::vector<Cause> causes{d.verdicts[0].cause, d.verdicts[1].cause};
  EXPECT_NE(std::find(causes.begin(), causes.end(), Cause::kUnequalWork), causes.end());
  EXPECT_NE(std::find(causes.begin(), causes.end(), Cause::kSlowDevice), causes.end());
}

// ST-01: the process stands still for 200 ms each step; the others only wait.
TEST(Straggler, NamesARankThatIsStopped) {
  SyntheticJob job{.dp = 4, .steps = 20};
  job.faults = {{.kind = Kind::kStop, .rank = 1, .amount = 200}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 1);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kStopped);
  EXPECT_EQ(d.verdicts[0].phase, TimeClass::kForward);
  EXPECT_NEAR(d.verdicts[0].own_ms, 195, 6);  // standing still, not all of its compute
  EXPECT_NEAR(d.verdicts[0].peers_ms, 0, 0.1);
  EXPECT_TRUE(has(d.verdicts[0].evidence, "neither running nor ready for ")) << d.verdicts[0].evidence[1];
  EXPECT_NEAR(d.verdicts[0].late_ms, 200, 5);
}

// Another process takes the core whatever the rank is doing: operators and host code suffer, the cause is one.
TEST(Straggler, OneCauseInSeveralClassesIsOneVerdict) {
  SyntheticJob job{.dp = 4, .steps = 20};
  job.faults = {{.kind = Kind::kContention, .rank = 1, .amount = 12}};
  SyntheticRun run = simulate(job);
  const std::int64_t more = 9'000'000;
  for (std::size_t r = 0; r < 4; ++r)
    for (StepRecord& row : run.ranks[r]) {
      const TimeClass c = r == 1 ? TimeClass::kHostGap : TimeClass::kDpWait;
      row.class_ns[static_cast<std::size_t>(c)] += more;
      row.wall_ns += more;
      (r == 1 ? row.run_delay_ns : row.cpu_ns) += more;
    }
  const Diagnosis d = judge(run.window(job));
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kCoreContention);
  job.faults.clear();
  const double truth = run.mean_step_ms + 9 - simulate(job).mean_step_ms;
  EXPECT_NEAR(d.verdicts[0].cost_ms / truth, 1, 0.1) << "of " << truth;
}

// A crowded machine: compute scatters by a third and hides a rank that is stopped now and then, but not the stops.
TEST(Straggler, StopsShowInNoiseThatHidesTheClasses) {
  SyntheticJob job{.dp = 2, .steps = 40, .seed = 3, .noise = 0.35};
  EXPECT_TRUE(judged(job).verdicts.empty());
  job.faults = {{.kind = Kind::kStop, .rank = 1, .amount = 30, .every = 3}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 1);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kStopped);
  EXPECT_EQ(d.verdicts[0].period, 3);
  EXPECT_GT(d.verdicts[0].own_ms, 24);  // a lower bound of the 30
  EXPECT_LT(d.verdicts[0].own_ms, 31);
  EXPECT_NE(first_line(d).find("rank 1 stands still, neither running nor ready, for 2"), std::string::npos);
  EXPECT_NE(first_line(d).find(" ms every 3 steps"), std::string::npos) << first_line(d);
}

// A rank that sleeps while it waits long for another one is not the one that stands still.
TEST(Straggler, AVictimThatSleepsIsNotStopped) {
  SyntheticJob job{.dp = 2, .steps = 40};
  job.faults = {{.kind = Kind::kStop, .rank = 1, .amount = 60, .from = 25}};
  SyntheticRun run = simulate(job);
  for (auto& rows : run.ranks)
    for (StepRecord& row : rows)
      if (wait_ms(row) > 20) row.cpu_ns -= static_cast<std::int64_t>((wait_ms(row) - 1) * 1e6);
  const Diagnosis d = judge(run.window(job));
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 1);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kStopped);
  EXPECT_EQ(d.verdicts[0].first_step, 25);
}

// A stop shorter than the transfers, where waiting burns the processor and where it sleeps.
TEST(Straggler, AShortStopIsSeenBesideCommunication) {
  for (const bool asleep : {false, true}) {
    SyntheticJob job{.dp = 4, .steps = 20};
    job.faults = {{.kind = Kind::kStop, .rank = 2, .amount = 8}};
    SyntheticRun run = simulate(job);
    for (auto& rows : run.ranks)
      for (StepRecord& row : rows)
        if (asleep)
          row.cpu_ns -=  // waits and transfers
              static_cast<std::int64_t>((wait_ms(row) + transfer_ms(row)) * 1e6);
    const Diagnosis d = judge(run.window(job));
    ASSERT_EQ(d.verdicts.size(), 1U);
    EXPECT_EQ(d.verdicts[0].rank, 2);
    EXPECT_EQ(d.verdicts[0].cause, Cause::kStopped) << (asleep ? "asleep" : "spinning");
  }
}

TEST(Straggler, TellsEveryFifthStepFromEveryStep) {
  SyntheticJob job{.dp = 4, .steps = 40};
  job.faults = {{.kind = Kind::kHostSleep, .rank = 3, .amount = 60, .every = 5}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 3);
  EXPECT_EQ(d.verdicts[0].pattern, Pattern::kPeriodic);
  EXPECT_EQ(d.verdicts[0].period, 5);
}

// Garbage collection: 27 pauses in 20 steps of 16 ranks were seen (torchtitan#148); nobody in particular.
TEST(Straggler, TellsPausesThatHopFromAStraggler) {
  SyntheticJob job{.dp = 8, .steps = 40};
  job.faults = {{.kind = Kind::kHostSleep, .amount = 40, .every = 3, .hopping = true}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, -1);
  EXPECT_EQ(d.verdicts[0].pattern, Pattern::kChangingRank);
  EXPECT_NE(first_line(d).find("hop from rank to rank"), std::string::npos);
}

TEST(Straggler, ADriftOfAllRanksNamesNobody) {
  const Diagnosis d = judged({.dp = 4, .steps = 60, .drift = 0.01});
  EXPECT_TRUE(d.verdicts.empty());
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_NE(d.notes[0].find("every rank became slower"), std::string::npos);
}

TEST(Straggler, TwoEquallySlowRanksAreBothNamed) {
  SyntheticJob job{.dp = 8, .steps = 30};
  job.faults = {{.kind = Kind::kData, .rank = 2, .amount = 20}, {.kind = Kind::kData, .rank = 5, .amount = 20}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 2U);
  EXPECT_EQ(std::min(d.verdicts[0].rank, d.verdicts[1].rank), 2);
  EXPECT_EQ(std::max(d.verdicts[0].rank, d.verdicts[1].rank), 5);
  EXPECT_NEAR(d.verdicts[0].cost_ms + d.verdicts[1].cost_ms, 20, 4);
}

// Offline: 100 of 400 steps were slow. The cost is that of the whole run.
TEST(Straggler, AFaultThatCameAndWentIsFoundInALongRun) {
  SyntheticJob job{.dp = 2, .steps = 400};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 40, .from = 100}};
  const SyntheticRun sick = simulate(job);
  job.faults.clear();
  const SyntheticRun well = simulate(job);
  std::vector<std::vector<StepRecord>> rows(2);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t s = 0; s < 400; ++s) rows[r].push_back(s < 200 ? sick.ranks[r][s] : well.ranks[r][s]);
  const Diagnosis d = judge_run({.dp = 2, .tp = 1, .ranks = common_steps(rows)}, {.mfu = 0.3});
  ASSERT_EQ(d.verdicts.size(), 1U);
  const Verdict& v = d.verdicts[0];
  EXPECT_EQ(v.rank, 1);
  EXPECT_EQ(v.first_step, 100);
  EXPECT_NEAR(v.cost_ms, 10, 1);
  EXPECT_NEAR(v.own_ms, 41, 1);
  EXPECT_TRUE(has(v.evidence, "in 2 of 8 parts of the run"));
  EXPECT_EQ(d.steps, 400U);
  EXPECT_GT(*v.mfu_points, 1);
  EXPECT_EQ(d.victim.rank, 0);
}

// A device driver without counters: rows hold times alone.
TEST(Straggler, WorksWithoutCounters) {
  SyntheticJob job{.dp = 4, .steps = 20, .counters = false};
  job.faults = {{.kind = Kind::kSlowClock, .rank = 1, .amount = 0.2}};
  const Diagnosis d = judged(job);
  ASSERT_EQ(d.verdicts.size(), 1U);
  EXPECT_EQ(d.verdicts[0].rank, 1);
  EXPECT_EQ(d.verdicts[0].cause, Cause::kSlowDevice);
}

TEST(Straggler, FewStepsAndOneRankAreNoEvidence) {
  SyntheticJob job{.steps = 5};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 300}};
  EXPECT_TRUE(judged(job).too_short);
  EXPECT_TRUE(judged(job).verdicts.empty());
  EXPECT_TRUE(judged({.dp = 1, .steps = 30}).verdicts.empty());
}

TEST(Straggler, RefusesRowsThatDoNotBelongTogether) {
  const SyntheticJob job{.steps = 20};
  SyntheticRun run = simulate(job);
  Window window = run.window(job);
  window.dp = 4;
  EXPECT_THROW(judge(window), Error);
  run.ranks[1][3].step = 77;
  try {
    judge(run.window(job));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "rank 1 has step 77 where rank 0 has step 3");
  }
  run.ranks[1][3].step = 3;
  run.ranks[1].erase(run.ranks[1].begin());
  EXPECT_THROW(judge(run.window(job)), Error);
  Window mended{.dp = 2, .tp = 1, .ranks = common_steps(run.ranks)};
  EXPECT_EQ(judge(mended).steps, 19U);
}

}  // namespace
}  // namespace drivetrain

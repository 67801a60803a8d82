#include "runtime/diagnosis/explain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/diagnosis/straggler.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

std::vector<std::size_t> all_steps(std::size_t count) {
  std::vector<std::size_t> steps(count);
  std::iota(steps.begin(), steps.end(), 0U);
  return steps;
}

TEST(Explain, LatenessOfOneClassHasTheCauseOfThatClass) {
  SyntheticJob job{.dp = 4, .steps = 20};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 20}, {.kind = Kind::kCopy, .rank = 1, .amount = 3}};
  const SyntheticRun run = simulate(job);
  const Window window = run.window(job);
  const Finding total{
      .rank = 1, .signal = Signal::kTotal, .affected = all_steps(20), .excess_ms = 23, .persistence = 1};
  const Verdict v = explain(window, Lateness(window), total, {});
  EXPECT_EQ(v.cause, Cause::kData);
  EXPECT_EQ(v.phase, TimeClass::kDataWait);
  EXPECT_NEAR(v.own_ms, 21, 1);
  EXPECT_NEAR(v.peers_ms, 1, 0.2);
}

// 12 ms in each step, in turn for data, copies and host code: late for sure, but with nothing in particular.
TEST(Explain, LatenessThatWandersOverTheClassesHasNoNamedCause) {
  SyntheticJob job{.dp = 4, .steps = 21};
  SyntheticRun run = simulate(job);
  const TimeClass turns[] = {TimeClass::kDataWait, TimeClass::kCopy, TimeClass::kHostGap};
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t s = 0; s < 21; ++s) {
      StepRecord& row = run.ranks[r][s];
      row.class_ns[static_cast<std::size_t>(r == 2 ? turns[s % 3] : TimeClass::kDpWait)] += 12'000'000;
      row.wall_ns += 12'000'000;
      row.cpu_ns += 12'000'000;
    }
  const Window window = run.window(job);
  const Finding total{
      .rank = 2, .signal = Signal::kTotal, .affected = all_steps(21), .excess_ms = 12, .persistence = 1};
  EXPECT_EQ(explain(window, Lateness(window), total, {}).cause, Cause::kOther);
}

TEST(Explain, SlowdownsAreOfTheSameWork) {
  SyntheticJob job{.dp = 4, .steps = 20};
  job.faults = {{.kind = Kind::kMemoryHog, .rank = 3, .amount = 0.2},
                {.kind = Kind::kMoreWork, .rank = 3, .amount = 0.5}};
  const SyntheticRun run = simulate(job);
  const Slowdowns slow = slowdowns(run.window(job), 3, all_steps(20));
  EXPECT_NEAR(slow.matrix, 1.04, 0.03);
  EXPECT_NEAR(slow.memory_bound, 1.6, 0.05);
}

TEST(Explain, TheDeviceOfALateRankIsEvidence) {
  SyntheticJob job{.dp = 2, .steps = 20};
  job.faults = {{.kind = Kind::kSlowClock, .rank = 1, .amount = 0.3}};
  const SyntheticRun run = simulate(job);
  const std::vector<DeviceFacts> devices{{.clock_mhz = 1980}, {.temperature_c = 93, .clock_mhz = 1365}};
  const Diagnosis d = judge(run.window(job), {}, devices);
  ASSERT_EQ(d.verdicts.size(), 1U);
  std::string all;
  for (const std::string& e : d.verdicts[0].evidence) all += e + "; ";
  EXPECT_NE(all.find("93 C"), std::string::npos) << all;
  EXPECT_NE(all.find("1365 MHz, its peers at 1980 MHz"), std::string::npos) << all;
}

}  // namespace
}  // namespace drivetrain

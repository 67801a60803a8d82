// The confusion matrix on paper: healthy and faulty synthetic jobs of 2, 4 and 8 ranks, effects of 5 % and more, judged
// as the online detector sees them, on 20 steps. tools/fault_matrix does the same with real processes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/straggler.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

struct Layout {
  int dp, tp;
};
constexpr Layout kLayouts[] = {{2, 1}, {1, 2}, {4, 1}, {2, 2}, {8, 1}, {4, 2}};

struct Scenario {
  const char* name;
  PlantedFault fault;
  Cause cause;
};
// Amounts between 5 and 30 % of a step of 100 ms; those of every k-th step cost 5 % or more on average.
const Scenario kScenarios[] = {
    {"data", {.kind = Kind::kData, .amount = 6}, Cause::kData},
    {"much data", {.kind = Kind::kData, .amount = 30}, Cause::kData},
    {"data every 5th", {.kind = Kind::kData, .amount = 40, .every = 5}, Cause::kData},
    {"copy", {.kind = Kind::kCopy, .amount = 7}, Cause::kCopy},
    {"host", {.kind = Kind::kHostSleep, .amount = 8}, Cause::kHostGap},
    {"host every 4th", {.kind = Kind::kHostSleep, .amount = 30, .every = 4}, Cause::kHostGap},
    {"host every 2nd", {.kind = Kind::kHostSleep, .amount = 16, .every = 2}, Cause::kHostGap},
    {"checkpoint every 4th", {.kind = Kind::kCheckpoint, .amount = 60, .every = 4}, Cause::kCheckpoint},
    {"stopped", {.kind = Kind::kStop, .amount = 20}, Cause::kStopped},
    {"contention", {.kind = Kind::kContention, .amount = 12}, Cause::kCoreContention},
    {"slow clock", {.kind = Kind::kSlowClock, .amount = 0.10}, Cause::kSlowDevice},
    {"memory hog", {.kind = Kind::kMemoryHog, .amount = 0.12}, Cause::kMemoryBandwidth},
    {"more work", {.kind = Kind::kMoreWork, .amount = 0.15}, Cause::kUnequalWork},
};

TEST(StragglerMatrix, RecallPrecisionCauseAndFalseAlarms) {
  int faulty = 0, detected = 0, right_cause = 0, right = 0, wrong = 0, healthy = 0, false_alarms = 0;
  std::vector<double> gain_errors;
  std::uint64_t seed = 1000;
  for (const Layout layout : kLayouts) {
    const int ranks = layout.dp * layout.tp;
    for (int repeat = 0; repeat < 20; ++repeat) {
      const SyntheticJob job{.dp = layout.dp, .tp = layout.tp, .steps = 20, .seed = ++seed};
      const SyntheticRun run = simulate(job);
      const Diagnosis d = judge(run.window(job));
      ++healthy;
      false_alarms += !d.verdicts.empty();
      for (const Verdict& v : d.verdicts) {
        ++wrong;
        std::printf("healthy dp %d tp %d: rank %d %s %.1f ms\n", layout.dp, layout.tp, v.rank, name(v.cause),
                    v.cost_ms);
      }
    }
    for (const Scenario& scenario : kScenarios)
      for (int repeat = 0; repeat < 3; ++repeat) {
        SyntheticJob job{.dp = layout.dp, .tp = layout.tp, .steps = 20, .seed = ++seed};
        PlantedFault fault = scenario.fault;
        fault.rank = static_cast<int>(seed % static_cast<std::uint64_t>(ranks));
        job.faults = {fault};
        const SyntheticRun run = simulate(job);
        const Diagnosis d = judge(run.window(job));
        job.faults.clear();  // the same job, same noise, without the fault
        const double truth = run.mean_step_ms - simulate(job).mean_step_ms;
        double claimed = 0;
        ++faulty;
        bool found = false, cause = false;
        for (const Verdict& v : d.verdicts) {
          (v.rank == fault.rank ? right : wrong) += 1;
          claimed += v.cost_ms;
          found |= v.rank == fault.rank;
          cause |= v.rank == fault.rank && v.cause == scenario.cause;
          if (v.rank != fault.rank || v.cause != scenario.cause)
            std::printf("%s, dp %d tp %d, rank %d: says rank %d %s %.1f ms\n", scenario.name, layout.dp, layout.tp,
                        fault.rank, v.rank, name(v.cause), v.cost_ms);
        }
        if (!found) std::printf("%s, dp %d tp %d: missed\n", scenario.name, layout.dp, layout.tp);
        if (found) gain_errors.push_back(std::abs(claimed / truth - 1));
        detected += found;
        right_cause += cause;
      }
  }
  const double recall = double(detected) / faulty, precision = double(right) / (right + wrong);
  const double cause = double(right_cause) / detected;
  std::printf("recall %.3f precision %.3f cause %.3f false alarms %d of %d healthy runs\n", recall, precision, cause,
              false_alarms, healthy);
  std::printf("claimed gain off by %.1f %% in the median, %.1f %% in the 90th percentile\n",
              100 * median(gain_errors), 100 * quantile(gain_errors, 0.9));
  EXPECT_GE(recall, 0.95);
  EXPECT_GE(precision, 0.95);
  EXPECT_GE(cause, 0.9);
  EXPECT_EQ(false_alarms, 0) << "of " << healthy;
  EXPECT_LT(quantile(gain_errors, 0.9), 0.2);
}

}  // namespace
}  // namespace drivetrain

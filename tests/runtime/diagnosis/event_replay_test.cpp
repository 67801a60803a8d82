#include "runtime/diagnosis/event_replay.h"

#include <gtest/gtest.h>

#include "kernels/error.h"
#include "runtime/diagnosis/robust_stats.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;
constexpr std::uint8_t kDataPhase = 0, kForwardPhase = 2, kBackwardPhase = 3;

JobEvents events_of(const SyntheticJob& job, const SyntheticRun& run) {
  JobEvents events{.dp = job.dp, .tp = job.tp, .ranks = {}};
  for (const auto& rank : run.events) events.ranks.emplace_back(rank);
  return events;
}

struct Layout {
  int dp, tp;
};
class EventReplay : public ::testing::TestWithParam<Layout> {};

TEST_P(EventReplay, ReproducesTheStepTimesWhenNothingIsChanged) {
  const auto [dp, tp] = GetParam();
  SyntheticJob job{.dp = dp, .tp = tp, .steps = 30, .noise = 0.05, .spikes = 0.1};
  job.faults = {{.kind = Kind::kData, .rank = 1, .amount = 15}};
  const SyntheticRun run = simulate(job);
  const std::vector<double> replayed = replay_steps(events_of(job, run));
  ASSERT_EQ(replayed.size(), 29U);
  std::int64_t end = 0, before = 0;
  for (std::size_t s = 0; s < 30; ++s) {
    for (const auto& rows : run.ranks) end = std::max(end, rows[s].begin_ns + rows[s].wall_ns);
    if (s > 0) {
      EXPECT_NEAR(replayed[s - 1] / (static_cast<double>(end - before) * 1e-6), 1, 0.02) << "step " << s;
    }
    before = end;
  }
}

TEST_P(EventReplay, ClaimsTheGainThatRemovingTheFaultHas) {
  const auto [dp, tp] = GetParam();
  const struct {
    PlantedFault fault;
    std::vector<std::uint8_t> phases;
  } faults[] = {{{.kind = Kind::kData, .amount = 8}, {kDataPhase}},
                {{.kind = Kind::kData, .amount = 60}, {kDataPhase}},
                {{.kind = Kind::kSlowClock, .amount = 0.2}, {kForwardPhase, kBackwardPhase}}};
  for (const auto& f : faults) {
    SyntheticJob job{.dp = dp, .tp = tp, .steps = 40, .seed = 4};
    job.faults = {f.fault};
    job.faults[0].rank = dp * tp - 1;
    const SyntheticRun run = simulate(job);
    SyntheticJob healthy = job;
    healthy.faults.clear();
    const double truth = run.mean_step_ms - simulate(healthy).mean_step_ms;
    double claimed = 0;
    for (const std::uint8_t phase : f.phases) claimed += replayed_gain_ms(events_of(job, run), dp * tp - 1, phase);
    EXPECT_NEAR(claimed / truth, 1, 0.2) << "of " << truth << " ms";
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, EventReplay,
                         ::testing::Values(Layout{2, 1}, Layout{4, 1}, Layout{1, 2}, Layout{2, 2}));

// Written by hand, in milliseconds: two ranks, one collective a step, rank 1 computes 30 where rank 0 computes 10.
class ByHand : public ::testing::Test {
 protected:
  void phase(int rank, std::int64_t step, std::uint8_t what, double begin, double end) {
    events[static_cast<std::size_t>(rank)].push_back(
        {.step = step, .begin_ns = ns(begin), .end_ns = ns(end), .what = what});
  }
  void collective(int rank, std::int64_t step, double begin, double last, double end, std::uint64_t sequence) {
    events[static_cast<std::size_t>(rank)].push_back({.step = step,
                                                      .begin_ns = ns(begin),
                                                      .end_ns = ns(end),
                                                      .last_arrival_ns = ns(last),
                                                      .kind = LedgerEvent::Kind::kCollective,
                                                      .axis = static_cast<std::uint8_t>(CommAxis::kDp),
                                                      .sequence = sequence});
  }
  static std::int64_t ns(double ms) { return static_cast<std::int64_t>(ms * 1e6); }
  JobEvents job() const { return {.dp = 2, .tp = 1, .ranks = {events[0], events[1]}}; }
  std::vector<LedgerEvent> events[2];
};

TEST_F(ByHand, InnerPhasesAndClocksOfTheirOwn) {
  for (int s = 0; s < 3; ++s) {
    const double t = 35.0 * s, other_clock = 1e6;
    const auto sequence = static_cast<std::uint64_t>(s + 1);
    phase(0, s, 3, t, t + 10);
    collective(0, s, t + 10, t + 30, t + 35, sequence);
    phase(1, s, 4, other_clock + t + 5, other_clock + t + 25);  // recompute, inside backward
    phase(1, s, 3, other_clock + t, other_clock + t + 30);
    collective(1, s, other_clock + t + 30, other_clock + t + 30, other_clock + t + 35, sequence);
  }
  EXPECT_EQ(replay_steps(job()), (std::vector<double>{35, 35}));
  EXPECT_NEAR(local_phase_ms(job(), 1, 4), 20, 1e-9);
  EXPECT_NEAR(local_phase_ms(job(), 1, 3), 10, 1e-9);
  // Without its recompute rank 1 needs 10, like rank 0.
  EXPECT_NEAR(replayed_gain_ms(job(), 1, 4), 20, 1e-9);
  EXPECT_EQ(replayed_gain_ms(job(), 0, 3), 0);
}

// A collective behind compute costs only what is left of it when the step ends.
TEST_F(ByHand, CollectivesBehindComputeDoNotHoldTheRankUp) {
  for (int s = 0; s < 3; ++s)
    for (int r = 0; r < 2; ++r) {
      const double t = 100.0 * s;
      const auto sequence = static_cast<std::uint64_t>(2 * s + 1);
      phase(r, s, 3, t, t + 80);
      collective(r, s, t + 20, t + 20, t + 60, sequence);      // begins at 20, over at 60,
      collective(r, s, t + 40, t + 40, t + 41, sequence + 1);  // another begins at 40
      phase(r, s, 5, t + 80, t + 100);
    }
  EXPECT_EQ(replay_steps(job()), (std::vector<double>{100, 100}));
}

// ... and that is waited for when the compute in front of it shrinks.
TEST_F(ByHand, TheStepEndsWithItsLastCollective) {
  for (int s = 0; s < 3; ++s)
    for (int r = 0; r < 2; ++r) {
      const double t = 100.0 * s;
      phase(r, s, 3, t, t + 80);
      collective(r, s, t + 70, t + 70, t + 95, static_cast<std::uint64_t>(s + 1));  // the optimizer begins inside it
      phase(r, s, 5, t + 80, t + 100);
    }
  EXPECT_EQ(replay_steps(job()), (std::vector<double>{100, 100}));
  const std::vector<LocalChange> no_optimizer{{0, 5, 0}, {1, 5, 0}};
  EXPECT_EQ(replay_steps(job(), no_optimizer), (std::vector<double>{95, 95}));
}

TEST_F(ByHand, ACollectiveThatOneRankMissesIsNamed) {
  for (int r = 0; r < 2; ++r) collective(r, 0, 1, 1, 2, 1);
  collective(0, 0, 3, 3, 4, 2);
  try {
    replay_steps(job());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("rank 0 waits for ever in collective 2"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace drivetrain

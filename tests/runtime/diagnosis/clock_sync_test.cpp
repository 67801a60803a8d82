#include "runtime/diagnosis/clock_sync.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {
namespace {

struct Planted {
  double offset_ms = 0, drift_ppm = 0;
  double late_us = 15;    // mean of the one-sided delay in noticing an end
  double outliers = 0.1;  // share of ends noticed 1 to 20 ms late
};
struct Ends {
  std::vector<CollectiveEnd> reference, rank;
  std::int64_t true_time(std::int64_t rank_ns, const Planted& p) const {
    const double x = (static_cast<double>(rank_ns) - p.offset_ms * 1e6) / (1 + p.drift_ppm * 1e-6);
    return static_cast<std::int64_t>(std::llround(x));
  }
};

// 100 s of training, five collectives a second; offset counts from time 0.
Ends collectives(const Planted& p, std::uint64_t seed, int count = 500) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> late(1 / (p.late_us * 1e3));
  std::uniform_real_distribution<double> uniform;
  const auto noticed = [&] {
    return late(random) + (uniform(random) < p.outliers ? 1e6 + 19e6 * uniform(random) : 0);
  };
  Ends ends;
  for (int i = 0; i < count; ++i) {
    const double t = 2e8 * i + 5e7 * uniform(random);
    const auto key = static_cast<std::uint64_t>(i);
    ends.reference.push_back({key, static_cast<std::int64_t>(t + noticed())});
    ends.rank.push_back(
        {key, static_cast<std::int64_t>((t + noticed()) * (1 + p.drift_ppm * 1e-6) + p.offset_ms * 1e6)});
  }
  return ends;
}

TEST(ClockSync, RecoversOffsetAndDriftTo20MicrosecondsUnderJitterAndOutliers) {
  std::uint64_t seed = 0;
  for (const Planted p : {Planted{}, {3, 0}, {-7200000, 40}, {250, -100}, {1, 10, 30, 0.2}})
    for (int repeat = 0; repeat < 5; ++repeat) {
      const Ends ends = collectives(p, ++seed);
      const ClockMap map = estimate_clock(ends.reference, ends.rank);
      EXPECT_EQ(map.samples, 500U);
      double worst = 0;
      for (const double t : {0.0, 5e10, 1e11}) {
        const auto on_rank = static_cast<std::int64_t>(t * (1 + p.drift_ppm * 1e-6) + p.offset_ms * 1e6);
        worst = std::max(worst, std::abs(static_cast<double>(map.to_reference(on_rank)) - t));
      }
      EXPECT_LT(worst, 20e3) << "offset " << p.offset_ms << " ms, drift " << p.drift_ppm;
      EXPECT_LT(worst, map.error_ns) << "the bound is broken";
      EXPECT_LT(map.error_ns, 100e3);
    }
}

TEST(ClockSync, KeysMayBeMissingAndOutOfOrder) {
  const Planted p{5, 20};
  Ends ends = collectives(p, 9);
  std::shuffle(ends.rank.begin(), ends.rank.end(), std::mt19937_64(1));
  ends.rank.resize(300);
  const ClockMap map = estimate_clock(ends.reference, ends.rank);
  EXPECT_EQ(map.samples, 300U);
  EXPECT_NEAR(map.drift, 20e-6, 1e-6);
}

TEST(ClockSync, WithoutCommonCollectivesTheMapIsTheIdentity) {
  const ClockMap map = estimate_clock({}, {});
  EXPECT_EQ(map.samples, 0U);
  EXPECT_EQ(map.to_reference(12345), 12345);
}

// Ranks that share different groups with rank 0: the tensor peer, the data peer, and the one that meets it in the world.
TEST(ClockSync, EveryRankOfAJobFindsItsWayToRankZero) {
  const SyntheticJob job{.dp = 2, .tp = 2, .steps = 60};
  SyntheticRun run = simulate(job);
  std::vector<std::span<const LedgerEvent>> ranks;
  for (std::size_t r = 0; r < 4; ++r) {
    for (LedgerEvent& e : run.events[r]) {
      e.end_ns += static_cast<std::int64_t>(r) * 700'000'000;
      e.begin_ns += static_cast<std::int64_t>(r) * 700'000'000;
    }
    ranks.emplace_back(run.events[r]);
  }
  const std::vector<ClockMap> maps = estimate_clocks(ranks, 2, 2);
  ASSERT_EQ(maps.size(), 4U);
  EXPECT_EQ(maps[0].to_reference(5), 5);
  EXPECT_EQ(maps[1].samples, 60U * 9);  // 8 tensor collectives and the world's
  EXPECT_EQ(maps[2].samples, 60U * 3);  // 2 buckets and the world's
  EXPECT_EQ(maps[3].samples, 60U);      // the world's
  for (std::size_t r = 1; r < 4; ++r) EXPECT_NEAR(maps[r].offset_ns, 7e8 * static_cast<double>(r), 100e3) << r;
}

}  // namespace
}  // namespace drivetrain

#include "runtime/diagnosis/robust_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace drivetrain {
namespace {

TEST(RobustStats, MedianAndQuantilesByHand) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_EQ(quantile({0, 10}, 0.3), 3);
}

TEST(RobustStats, SpreadIsThatOfTheOrdinaryValues) {
  const std::vector<double> v{1, 2, 3, 4, 1000};
  EXPECT_DOUBLE_EQ(robust_sigma(v, median(v)), 1.4826);
  EXPECT_DOUBLE_EQ(robust_z(5, 3, 1), 2);
  EXPECT_EQ(robust_z(3, 3, 0), 0);
  EXPECT_EQ(robust_z(4, 3, 0), std::numeric_limits<double>::infinity());
}

TEST(RobustStats, SigmaEstimatesANormalDistribution) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(7, 2);
  std::vector<double> v(20000);
  for (double& x : v) x = normal(random);
  EXPECT_NEAR(robust_sigma(v, median(v)), 2, 0.05);
  const Core core = densest_part(v);
  EXPECT_NEAR(core.center, 7, 0.7);
  EXPECT_NEAR(core.sigma, 2, 0.15);
}

// Half of the values are outliers: the median lies among them or between, the core does not.
TEST(RobustStats, DensestPartStaysWithTheLowerHalf) {
  std::vector<double> v;
  for (int i = 0; i < 20; ++i) v.push_back(i % 2 == 0 ? 1 + 0.01 * i : 50 + 0.01 * i);
  EXPECT_NEAR(densest_part(v).center, 1.09, 0.1);
  EXPECT_LT(densest_part(v).sigma, 0.3);
}

TEST(RobustStats, ClippedMeanKeepsJitterAndDropsAWildStep) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> jitter(0.1);
  std::vector<double> v(1000);
  for (double& x : v) x = jitter(random);
  EXPECT_NEAR(clipped_mean(v, 6), 10, 0.8);
  std::vector<double> w{9, 10, 11, 9, 10, 11, 10, 500};
  EXPECT_LT(clipped_mean(w, 6), 12);
}

// Table values of the normal and Poisson distributions.
TEST(RobustStats, TailsAreThoseOfTheTables) {
  EXPECT_NEAR(normal_tail(0), 0.5, 1e-15);
  EXPECT_NEAR(normal_tail(1.959964), 0.025, 1e-7);
  EXPECT_NEAR(normal_quantile_of_tail(0.01), 2.326348, 1e-6);
  EXPECT_NEAR(poisson_tail(0, 2), 1, 1e-15);
  EXPECT_NEAR(poisson_tail(3, 1), 0.0803014, 1e-7);
}

// The worked example of Benjamini and Hochberg (1995), section 3: 15 p-values, rate 0.05, the four smallest fall.
TEST(RobustStats, BenjaminiHochbergReproducesThePaper) {
  const std::vector<double> p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                              0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<bool> rejected = benjamini_hochberg(p, 0.05);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(rejected[i], i < 4) << i;
  // A larger one may pull smaller ones along: 0.04 alone fails 0.025, both pass at 0.05.
  EXPECT_EQ(benjamini_hochberg(std::vector<double>{0.04, 0.045}, 0.05), (std::vector<bool>{true, true}));
  EXPECT_TRUE(benjamini_hochberg({}, 0.05).empty());
}

TEST(RobustStats, NeighboursThatAgreeCountLess) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> white(500), slow(500);
  double state = 0;
  for (std::size_t i = 0; i < white.size(); ++i) {
    white[i] = normal(random);
    slow[i] = state = 0.8 * state + normal(random);
  }
  EXPECT_GT(effective_count(white), 400);
  EXPECT_LT(effective_count(slow), 120);  // theory: 500 / 9 = 56
}

// Under no effect, p-values below 0.01 come about once in a hundred; with the announced effect nearly always.
TEST(RobustStats, MedianTestKeepsItsFalseAlarmRateAndItsPower) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const double effect = minimum_detectable(1, 50, 1, 0.01);
  int alarms = 0, found = 0;
  const int trials = 1000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> v(50), shifted(50);
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = normal(random);
      shifted[i] = v[i] + effect;
    }
    alarms += median_above_zero(v).p < 0.01;
    found += median_above_zero(shifted).p < 0.01;
  }
  EXPECT_LT(alarms, trials * 0.03);
  EXPECT_GT(found, trials * 0.88);
}

TEST(RobustStats, TheilSenIgnoresAQuarterOfWildPoints) {
  std::mt19937_64 random(13);
  std::normal_distribution<double> normal(0, 0.1);
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 400; ++i) points.emplace_back(i, 5 + 0.25 * i + (i % 4 == 0 ? 300 : normal(random)));
  const Line line = theil_sen(points);
  EXPECT_NEAR(line.slope, 0.25, 0.002);
  EXPECT_NEAR(line.at(200), 55, 0.3);
  EXPECT_EQ(theil_sen({}).slope, 0);
}

TEST(RobustStats, ASingleValueProvesNothing) {
  EXPECT_EQ(median_above_zero(std::vector<double>{5}).p, 1);
  EXPECT_TRUE(std::isinf(minimum_detectable(1, 1, 1, 0.01)));
}

}  // namespace
}  // namespace drivetrain

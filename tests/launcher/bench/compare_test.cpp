#include "launcher/bench/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/error.h"

namespace drivetrain {
namespace {

TEST(StudentT, EqualsPublishedTables) {
  EXPECT_NEAR(student_t(0.05, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(0.05, 2), 4.3027, 1e-4);
  EXPECT_NEAR(student_t(0.05, 4), 2.7764, 1e-4);
  EXPECT_NEAR(student_t(0.01, 5), 4.0321, 1e-4);
  EXPECT_NEAR(student_t(0.01, 10), 3.1693, 1e-4);
  EXPECT_NEAR(student_t(0.10, 29), 1.6991, 1e-4);
  EXPECT_THROW(student_t(0, 4), Error);
  EXPECT_THROW(student_t(0.05, 0), Error);
}

// Pairs that share the drift of their round: each round is slower than the one before, by far more than the change.
std::vector<double> rates(double level, double noise, std::size_t rounds, std::mt19937& random) {
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> result;
  for (std::size_t i = 0; i < rounds; ++i)
    result.push_back(level * std::exp(normal(random) - 0.3 * static_cast<double>(i)));
  return result;
}

TEST(ComparePairs, FindsAChangeUnderDriftAndSaysHowLarge) {
  std::mt19937 random(1);
  const auto baseline = rates(1000, 0.005, 5, random), faster = rates(1100, 0.005, 5, random);
  const Comparison c = compare_pairs(faster, baseline, 1);
  EXPECT_EQ(c.verdict, Comparison::Verdict::kFaster);
  EXPECT_LT(c.low, 0.10);
  EXPECT_GT(c.high, 0.10);
  EXPECT_GT(c.low, 0);
  EXPECT_GT(c.detectable, c.high - c.change);
  EXPECT_EQ(compare_pairs(baseline, faster, 1).verdict, Comparison::Verdict::kSlower);
}

TEST(ComparePairs, CallsEqualThingsEqualAndFindsWhatItCallsDetectable) {
  std::mt19937 random(2);
  constexpr int kBenches = 2000;
  int false_alarms = 0, found = 0;
  double detectable = 0;
  for (int i = 0; i < kBenches; ++i) {
    const Comparison c = compare_pairs(rates(1000, 0.02, 5, random), rates(1000, 0.02, 5, random), 1);
    false_alarms += c.verdict != Comparison::Verdict::kEqual ? 1 : 0;
    detectable += std::log1p(c.detectable) / kBenches;
  }
  for (int i = 0; i < kBenches; ++i)
    found +=
        compare_pairs(rates(1000 * std::exp(detectable), 0.02, 5, random), rates(1000, 0.02, 5, random), 1).verdict ==
                Comparison::Verdict::kFaster
            ? 1
            : 0;
  EXPECT_NEAR(false_alarms, kFalseAlarms * kBenches, 20);  // 20 of 2000, +- 4.5 sigma
  EXPECT_NEAR(found, 0.95 * kBenches, 0.025 * kBenches);
}

TEST(ComparePairs, AsksMoreOfManyComparisons) {
  std::mt19937 random(3);
  const auto a = rates(1000, 0.01, 4, random), b = rates(1010, 0.01, 4, random);
  EXPECT_GT(compare_pairs(a, b, 8).high, compare_pairs(a, b, 1).high);
  EXPECT_LT(compare_pairs(a, b, 8).low, compare_pairs(a, b, 1).low);
  EXPECT_THROW(compare_pairs(std::vector{1.0}, std::vector{1.0}, 1), Error);
}

TEST(ComparePairs, IdenticalFiguresAreEqual) {
  const std::vector<double> same{5, 6, 7};
  EXPECT_EQ(compare_pairs(same, same, 1).verdict, Comparison::Verdict::kEqual);
}

}  // namespace
}  // namespace drivetrain

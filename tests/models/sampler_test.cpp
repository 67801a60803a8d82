#include "models/sampler.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

#include "kernels/error.h"

namespace drivetrain {
namespace {

const std::vector<float> kLogits{0.0f, 2.0f, 1.0f, 2.0f, -5.0f};

std::map<std::int32_t, int> histogram(const SamplingOptions& options) {
  std::map<std::int32_t, int> counts;
  for (std::int64_t draw = 0; draw < 4000; ++draw) ++counts[sample_token(kLogits, options, draw)];
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  EXPECT_EQ(sample_token(kLogits, {}, 0), 1);
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  const auto counts = histogram({.temperature = 1, .top_k = 2});
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 2000, 200);
  EXPECT_NEAR(counts.at(3), 2000, 200);
}

TEST(Sampler, TopPKeepsTheSmallestSet) {
  // Probabilities: 0.388, 0.388, 0.143, 0.053, 0.0004.
  EXPECT_EQ(histogram({.temperature = 1, .top_p = 0.3}).size(), 1u);
  EXPECT_EQ(histogram({.temperature = 1, .top_p = 0.7}).size(), 2u);
  EXPECT_EQ(histogram({.temperature = 1, .top_p = 0.9}).size(), 3u);
}

TEST(Sampler, TemperatureSharpens) {
  EXPECT_GT(histogram({.temperature = 2}).at(0), histogram({.temperature = 0.5})[0]);
}

TEST(Sampler, SeedDecides) {
  const SamplingOptions a{.temperature = 1, .seed = 1}, b{.temperature = 1, .seed = 2};
  std::vector<std::int32_t> x, y, z;
  for (std::int64_t d = 0; d < 50; ++d) {
    x.push_back(sample_token(kLogits, a, d));
    y.push_back(sample_token(kLogits, a, d));
    z.push_back(sample_token(kLogits, b, d));
  }
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
}

TEST(Sampler, NotFiniteIsAnError) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(sample_token(std::vector<float>{nan, nan}, {}, 0), Error);
  EXPECT_EQ(sample_token(std::vector<float>{nan, 1.0f}, {}, 0), 1);
}

}  // namespace
}  // namespace drivetrain

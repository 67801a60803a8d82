// The golden files and their reader agree with the script that made them.
#include "tests/models/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drivetrain::golden {
namespace {

class EveryFixture : public testing::TestWithParam<std::string> {};

TEST_P(EveryFixture, FormulaGivesTheWeightsOfTheScript) {
  const Fixture fixture(GetParam());
  for (const auto& w : fixture.weights()) {
    const auto values = w.values();
    EXPECT_EQ(values.front(), static_cast<float>(w.first)) << w.name;
    EXPECT_EQ(values.back(), static_cast<float>(w.last)) << w.name;
  }
}

TEST_P(EveryFixture, LossFollowsFromLogitsAndTargets) {
  const Fixture fixture(GetParam());
  for (const std::string name : {"plain", "masked", "packed", "bf16"}) {
    const Case c = fixture.load_case(name);
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < c.batch * c.seq; ++row) {
      const auto target = c.targets[static_cast<std::size_t>(row)];
      if (target == -100) continue;
      const float* z = c.logits.data() + row * c.vocab;
      double total = 0;
      for (std::int64_t v = 0; v < c.vocab; ++v) total += std::exp(static_cast<double>(z[v]));
      sum += std::log(total) - z[target];
      ++count;
    }
    EXPECT_EQ(count, c.target_count) << name;
    EXPECT_NEAR(sum / static_cast<double>(count), c.loss, 1e-6 * c.loss) << name;
  }
}

TEST_P(EveryFixture, DocumentsRestartPositions) {
  const Case c = Fixture(GetParam()).load_case("packed");
  for (std::size_t i = 0; i < c.ids.size(); ++i) {
    const auto t = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % c.seq);
    EXPECT_EQ(c.positions[i], t - c.doc_starts[i]);
    const bool last_of_document = t + 1 < c.seq && c.doc_starts[i + 1] != c.doc_starts[i];
    EXPECT_EQ(c.targets[i] == -100, last_of_document);
  }
}

TEST_P(EveryFixture, EveryWeightHasGradientsAndAnEnd) {
  const Fixture fixture(GetParam());
  const Training training = fixture.training();
  ASSERT_EQ(training.losses.size(), static_cast<std::size_t>(training.steps));
  ASSERT_EQ(training.grad_norms.size(), training.losses.size());
  EXPECT_LT(training.losses.back(), training.losses.front());
  for (const auto& w : fixture.weights()) {
    for (const std::string name : {"plain", "masked", "packed", "bf16"}) {
      const Sample s = fixture.gradient(name, w.name);
      EXPECT_EQ(static_cast<std::int64_t>(s.values.size()), (w.count() + s.stride - 1) / s.stride) << w.name;
    }
    EXPECT_EQ(training.final_sums.count(w.name), 1u) << w.name;
    EXPECT_GT(fixture.final_weight(w.name).distance(w.values()), 0.01) << w.name << " was not trained";
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryFixture, testing::ValuesIn(fixture_names()),
                         [](const auto& instance) { return instance.param; });

TEST(GoldenSample, DistanceIsRelativeToTheLargest) {
  const Sample s{{1, -4}, 2, 4, {0, 0}};
  const std::vector<float> same{1, 9, -4, 9}, off{1.5f, 9, -4, 9};
  EXPECT_EQ(s.distance(same), 0);
  EXPECT_EQ(s.distance(off), 0.125);
  EXPECT_EQ((Sample{{1, -4}, 2, 4, {0, 1}}).distance(off), 0);
  EXPECT_THROW(s.distance(std::vector<float>{1, 2}), std::invalid_argument);
  const std::vector<float> nan{1, 9, std::numeric_limits<float>::quiet_NaN(), 9};
  EXPECT_EQ(s.distance(nan), std::numeric_limits<double>::infinity());
}

TEST(GoldenFixture, MissingOneThrows) {
  EXPECT_ANY_THROW(Fixture("no_such_fixture"));
}

}  // namespace
}  // namespace drivetrain::golden

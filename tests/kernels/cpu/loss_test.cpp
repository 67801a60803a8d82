#include "kernels/cpu/loss.h"

#include <limits>

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr double kIgnored = Ops::kIgnore;

// Cross-entropy of rows of `vocab` logits in f64, ignored rows left out.
double loss_reference(const std::vector<double>& z, const Host& targets, std::int64_t vocab) {
  double loss = 0;
  for (std::int64_t m = 0; m < targets.count(); ++m) {
    if (targets.at(m) == kIgnored) continue;
    double sum = 0;
    for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(z[static_cast<std::size_t>(m * vocab + v)]);
    loss += std::log(sum) - z[static_cast<std::size_t>(m * vocab + static_cast<std::int64_t>(targets.at(m)))];
  }
  return loss;
}

// Columns [begin, begin + count) of `all` with `padding` more columns of a large value.
Host slice_of(const Host& all, std::int64_t rows, std::int64_t cols, VocabSlice slice, std::int64_t padding) {
  Host part(all.view().dtype, {rows, slice.count + padding});
  for (std::int64_t i = 0; i < part.count(); ++i) part.put(i, 1000);
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t c = 0; c < slice.count; ++c) {
      part.put(m * (slice.count + padding) + c, all.at(m * cols + slice.begin + c));
    }
  }
  return part;
}

class LossTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
  const Host logits = Host::random(s.dtype, {s.rows, s.cols}, 1, -5, 5);
  Host targets{DType::kI32, {s.rows}};

  void SetUp() override {
    for (std::int64_t m = 0; m < s.rows; ++m)
      targets.put(m, m == 2 ? kIgnored : static_cast<double>(m * 37 % s.cols));
  }

  // Loss and gradient with the vocabulary cut in `slices` parts with padding columns.
  void check_slices(std::int64_t slices) {
    Host all_stats(DType::kF32, {slices, s.rows, 3}), loss = Host::filled(DType::kF64, {1}, 0.25);
    std::vector<Host> parts;
    std::vector<VocabSlice> ranges;
    for (std::int64_t k = 0; k < slices; ++k) {
      const std::int64_t begin = s.cols * k / slices, end = s.cols * (k + 1) / slices;
      ranges.push_back({begin, end - begin});
      parts.push_back(slice_of(logits, s.rows, s.cols, ranges.back(), 3));
      cpu::loss_stats(all_stats.view().rows(k, k + 1).reshape({s.rows, 3}), parts.back(), targets, ranges.back());
    }
    cpu::loss_sum(loss, all_stats, targets);
    EXPECT_NEAR(loss.at(0), 0.25 + loss_reference(logits.values(), targets, s.cols),
                1e-6 * static_cast<double>(s.rows + 1));
    const auto want = slope([&](const auto& z) { return 0.5 * loss_reference(z, targets, s.cols); }, logits.values());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      cpu::loss_grad(parts[k], all_stats, targets, ranges[k], 0.5f);
      const std::int64_t cols = ranges[k].count + 3;
      for (std::int64_t i = 0; i < parts[k].count(); ++i) {
        const std::int64_t m = i / cols, c = i % cols;
        const double w = c < ranges[k].count ? want[static_cast<std::size_t>(m * s.cols + ranges[k].begin + c)] : 0;
        if (m == 2 || c >= ranges[k].count) {
          ASSERT_EQ(parts[k].at(i), 0) << i;
        }
        ASSERT_NEAR(parts[k].at(i), w, 1e-7 + 2e-7 + 0.6 * epsilon(s.dtype) * std::abs(w)) << i;
      }
    }
  }
};

TEST_P(LossTest, OneSlice) {
  check_slices(1);
}
TEST_P(LossTest, TwoSlices) {
  check_slices(2);
}
TEST_P(LossTest, MoreSlicesThanIdsSometimes) {
  check_slices(4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LossTest, ::testing::ValuesIn(all_shapes()), shape_name);

TEST(Loss, UniformLogitsAreExact) {
  const Host targets = Host::of(DType::kI32, {2}, {1, kIgnored});
  const Host logits = Host::filled(DType::kF32, {2, 4}, 3);
  Host stats(DType::kF32, {1, 2, 3}), loss = Host::filled(DType::kF64, {1}, 0);
  cpu::loss_stats(stats.view().reshape({2, 3}), logits, targets, {0, 4});
  expect_equal(stats, {3, 4, 3, 0, 0, 0});
  cpu::loss_sum(loss, stats, targets);
  EXPECT_EQ(loss.at(0), std::log(4.0));
  cpu::loss_grad(logits, stats, targets, {0, 4}, 4);
  expect_equal(logits, {1, -3, 1, 1, 0, 0, 0, 0});
}

TEST(Loss, HugeLogitsDoNotOverflow) {
  const Host targets = Host::of(DType::kI32, {1}, {0}), logits = Host::of(DType::kF32, {1, 3}, {1e30, -1e30, 0});
  Host stats(DType::kF32, {1, 1, 3}), loss = Host::filled(DType::kF64, {1}, 0);
  cpu::loss_stats(stats.view().reshape({1, 3}), logits, targets, {0, 3});
  cpu::loss_sum(loss, stats, targets);
  EXPECT_EQ(loss.at(0), 0);
  cpu::loss_grad(logits, stats, targets, {0, 3}, 1);
  expect_equal(logits, {0, 0, 0});
}

TEST(Loss, LongRowsGrowTheMaximumAcrossChunks) {
  constexpr std::int64_t kVocab = 50'257;
  Host logits(DType::kBF16, {2, kVocab});
  for (std::int64_t i = 0; i < logits.count(); ++i) logits.put(i, static_cast<double>(i % kVocab) / 4096);
  const Host targets = Host::of(DType::kI32, {2}, {0, kVocab - 1});
  Host stats(DType::kF32, {1, 2, 3}), loss = Host::filled(DType::kF64, {1}, 0);
  cpu::loss_stats(stats.view().reshape({2, 3}), logits, targets, {0, kVocab});
  cpu::loss_sum(loss, stats, targets);
  const double want = loss_reference(logits.values(), targets, kVocab);
  EXPECT_NEAR(loss.at(0), want, 2e-7 * want);
}

TEST(Loss, NanLogitsGiveNanLossAndMinusInfinityIsAllowed) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Host targets = Host::of(DType::kI32, {3}, {1, 1, 1});
  for (const std::int64_t cols : {2, 40}) {
    Host logits = Host::filled(DType::kF32, {3, cols}, nan);
    for (std::int64_t c = 0; c < cols; ++c) logits.put(cols + c, c == 0 ? nan : 1);
    for (std::int64_t c = 0; c < cols; ++c) logits.put(2 * cols + c, c == 1 ? 1 : -inf);
    for (std::int64_t m = 0; m < 3; ++m) {
      Host stats(DType::kF32, {1, 1, 3}), loss = Host::filled(DType::kF64, {1}, 0);
      const Tensor target = targets.view().rows(m, m + 1);
      cpu::loss_stats(stats.view().reshape({1, 3}), logits.view().rows(m, m + 1), target, {0, cols});
      cpu::loss_sum(loss, stats, target);
      EXPECT_EQ(std::isnan(loss.at(0)), m < 2) << m << " " << cols;
      EXPECT_TRUE(m < 2 || loss.at(0) == 0) << loss.at(0);
    }
  }
}

TEST(Loss, AStretchOrASliceOfMinusInfinityAddsNothing) {
  constexpr std::int64_t kVocab = 5000;
  const double inf = std::numeric_limits<double>::infinity();
  Host logits = Host::filled(DType::kF32, {1, kVocab}, -inf), stats(DType::kF32, {1, 3});
  const Host target = Host::of(DType::kI32, {1}, {4999});
  cpu::loss_stats(stats, logits, target, {0, 4000});
  expect_equal(stats, {-inf, 0, 0});
  logits.put(4998, 2);
  logits.put(4999, 2);
  cpu::loss_stats(stats, logits, target, {0, kVocab});
  expect_equal(stats, {2, 2, 2});
}

TEST(Loss, ThreadsDoNotChangeTheGradient) {
  const Host logits = Host::random(DType::kBF16, {33, 3000}, 1), targets = Host::filled(DType::kI32, {33}, 7);
  expect_same_with_threads([&] {
    Host stats(DType::kF32, {1, 33, 3}), z = logits;
    cpu::loss_stats(stats.view().reshape({33, 3}), z, targets, {0, 2990});
    cpu::loss_grad(z, stats, targets, {0, 2990}, 0.125f);
    return z;
  });
}

TEST(Loss, WrongShapesThrow) {
  const Host logits(DType::kF32, {2, 4}), targets(DType::kI32, {2}), stats(DType::kF32, {2, 3}),
      loss(DType::kF32, {1});
  EXPECT_THROW(cpu::loss_stats(stats, logits, targets, {0, 5}), Error);
  EXPECT_THROW(cpu::loss_stats(logits, logits, targets, {0, 4}), Error);
  EXPECT_THROW(cpu::loss_sum(loss, stats.view().reshape({1, 2, 3}), targets), Error);
  EXPECT_THROW(cpu::loss_grad(logits, stats, targets, {0, 4}, 1), Error);
}

}  // namespace
}  // namespace drivetrain::testing

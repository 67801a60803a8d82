#include "kernels/cpu/rope.h"

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr std::int64_t kPositions = 12;

struct RopeCase {
  DType dtype;
  std::int64_t tokens, heads, kv_heads, head_dim;
};

std::vector<RopeCase> all_cases() {
  std::vector<RopeCase> cases;
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const std::int64_t head_dim : {2, 6, 34, 64, 100, 128}) {
      cases.push_back({t, 2, 2, 1, head_dim});
      cases.push_back({t, 0, 1, 1, head_dim});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<RopeCase>& info) {
  return std::string(name(info.param.dtype)) + "_" + std::to_string(info.param.tokens) + "x" +
         std::to_string(info.param.head_dim);
}

class RopeTest : public ::testing::TestWithParam<RopeCase> {
 protected:
  const RopeCase c = GetParam();
  const std::int64_t cols = (c.heads + 2 * c.kv_heads) * c.head_dim, half = c.head_dim / 2;
  const AttentionShape shape{1, c.tokens, c.heads, c.kv_heads, c.head_dim, 1.0f};
  Host qkv = Host::random(c.dtype, {c.tokens, cols}, 1), positions{DType::kI32, {c.tokens}};
  Host cos{DType::kF32, {kPositions, half}}, sin{DType::kF32, {kPositions, half}};
  void SetUp() override {
    for (std::int64_t i = 0; i < cos.count(); ++i) {
      const double angle = static_cast<double>(i / half) *
                           std::pow(10000.0, -static_cast<double>(i % half) / static_cast<double>(half));
      cos.put(i, std::cos(angle));
      sin.put(i, std::sin(angle));
    }
    for (std::int64_t m = 0; m < c.tokens; ++m) positions.put(m, static_cast<double>(m * 5 % kPositions));
  }
  std::vector<double> reference(const std::vector<double>& x) const {
    std::vector<double> y = x;
    for (std::int64_t m = 0; m < c.tokens; ++m) {
      for (std::int64_t h = 0; h < c.heads + c.kv_heads; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto low = static_cast<std::size_t>(m * cols + h * c.head_dim + i),
                     high = low + static_cast<std::size_t>(half);
          const std::int64_t angle = static_cast<std::int64_t>(positions.at(m)) * half + i;
          y[low] = x[low] * cos.at(angle) - x[high] * sin.at(angle);
          y[high] = x[high] * cos.at(angle) + x[low] * sin.at(angle);
        }
      }
    }
    return y;
  }
};

TEST_P(RopeTest, RotatesQueriesAndKeysAndLeavesValues) {
  const std::vector<double> before = qkv.values(), want = reference(before);
  cpu::rope(qkv, positions, cos, sin, shape);
  expect_close(qkv, want, 0.51, 2e-7);
  const std::int64_t values_begin = (c.heads + c.kv_heads) * c.head_dim;
  for (std::int64_t i = 0; i < qkv.count(); ++i) {
    if (i % cols >= values_begin) {
      ASSERT_EQ(qkv.at(i), before[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_P(RopeTest, GradIsTheTransposedRotation) {
  const Host dy = Host::random(c.dtype, {c.tokens, cols}, 2);
  const auto want = slope([&](const auto& x) { return dot(reference(x), dy.values()); }, qkv.values());
  Host dqkv = dy;
  cpu::rope_grad(dqkv, positions, cos, sin, shape);
  expect_close(dqkv, want, 0.51, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RopeTest, ::testing::ValuesIn(all_cases()), case_name);

TEST(Rope, QuarterTurnIsExact) {
  const Host positions = Host::of(DType::kI32, {1}, {1});
  const Host cos = Host::of(DType::kF32, {2, 1}, {1, 0}), sin = Host::of(DType::kF32, {2, 1}, {0, 1});
  Host qkv = Host::of(DType::kBF16, {1, 6}, {2, 3, 4, 5, 6, 7});
  cpu::rope(qkv, positions, cos, sin, {1, 1, 1, 1, 2, 1.0f});
  expect_equal(qkv, {-3, 2, -5, 4, 6, 7});
  cpu::rope_grad(qkv, positions, cos, sin, {1, 1, 1, 1, 2, 1.0f});
  expect_equal(qkv, {2, 3, 4, 5, 6, 7});
}

TEST(Rope, WrongArgumentsThrow) {
  const Host cos(DType::kF32, {4, 2}), qkv(DType::kF32, {1, 12}), inside = Host::of(DType::kI32, {1}, {3});
  const Host outside = Host::of(DType::kI32, {1}, {4}), negative = Host::of(DType::kI32, {1}, {-1});
  const AttentionShape shape{1, 1, 1, 1, 4, 1.0f}, odd{1, 1, 1, 1, 3, 1.0f};
  EXPECT_THROW(cpu::rope(qkv, outside, cos, cos, shape), Error);
  EXPECT_THROW(cpu::rope(qkv, negative, cos, cos, shape), Error);
  EXPECT_THROW(cpu::rope(qkv, inside, cos, cos, odd), Error);
  EXPECT_THROW(cpu::rope(qkv, inside, cos, qkv, shape), Error);
}

}  // namespace
}  // namespace drivetrain::testing

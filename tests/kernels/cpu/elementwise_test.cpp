#include "kernels/cpu/elementwise.h"

#include <bit>
#include <limits>

#include "kernels/cpu/copy.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

class ElementwiseTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
};

TEST_P(ElementwiseTest, ZeroClears) {
  Host x(s.dtype, {s.rows, s.cols});
  cpu::zero(x);
  expect_equal(x, std::vector<double>(static_cast<std::size_t>(x.count()), 0.0));
}

TEST_P(ElementwiseTest, CopyConvertsToEveryFloatType) {
  const Host x = Host::random(s.dtype, {s.rows, s.cols}, 1, -100, 100);
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    Host y(t, {s.rows, s.cols}), back(s.dtype, {s.rows, s.cols});
    cpu::copy(y, x);
    for (std::int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(y.at(i), t == DType::kF64 ? x.at(i) : rounded(t, x.at(i)));
    cpu::copy(back, y);
    for (std::int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(back.at(i), rounded(s.dtype, y.at(i)));
  }
}

TEST_P(ElementwiseTest, AddRoundsOnceAndWorksInPlace) {
  const Host a = Host::random(s.dtype, {s.rows, s.cols}, 1), b = Host::random(s.dtype, {s.rows, s.cols}, 2);
  std::vector<double> want;
  for (std::int64_t i = 0; i < a.count(); ++i) want.push_back(rounded(s.dtype, a.at(i) + b.at(i)));
  Host y(s.dtype, {s.rows, s.cols});
  cpu::add(y, a, b);
  expect_equal(y, want);
  cpu::add(a, a, b);
  expect_equal(a, want);
}

TEST_P(ElementwiseTest, BiasGradSumsColumnsExactly) {
  Host dy(s.dtype, {s.rows, s.cols}), db(DType::kF32, {s.cols});
  std::vector<double> want(static_cast<std::size_t>(s.cols), 0.0);
  for (std::int64_t i = 0; i < dy.count(); ++i) {
    dy.put(i, static_cast<double>(i * 11 % 17 - 8));
    want[static_cast<std::size_t>(i % s.cols)] += dy.at(i);
  }
  cpu::bias_grad(db, dy, Write::kOverwrite);
  expect_equal(db, want);
  cpu::bias_grad(db, dy, Write::kAccumulate);
  for (double& w : want) w *= 2;
  expect_equal(db, want);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ElementwiseTest, ::testing::ValuesIn(all_shapes()), shape_name);

// Every 16-bit pattern and its neighbours half-way between: the vector conversions are those of kernels/float16.h.
template <class T>
void expect_conversions_equal_scalar(DType dtype) {
  std::vector<float> inputs;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const T x = std::bit_cast<T>(static_cast<std::uint16_t>(bits));
    const auto exact = static_cast<float>(x);
    const auto u = std::bit_cast<std::uint32_t>(exact);
    const std::uint32_t half = dtype == DType::kBF16 ? 0x8000u : 0x1000u;
    for (const std::uint32_t offset : {0u, half - 1, half, half + 1})
      inputs.push_back(std::bit_cast<float>(u + offset));
  }
  const auto n = static_cast<std::int64_t>(inputs.size());
  const Tensor x(inputs.data(), DType::kF32, {n});
  Host y(dtype, {n}), back(DType::kF32, {n});
  cpu::copy(y, x);
  cpu::copy(back, y);
  for (std::int64_t i = 0; i < n; ++i) {
    const T want(inputs[static_cast<std::size_t>(i)]);
    const T got = y.view().as<T>()[i];
    if (std::isnan(static_cast<float>(want))) {
      ASSERT_TRUE(std::isnan(static_cast<float>(got))) << i;
      ASSERT_TRUE(std::isnan(back.at(i))) << i;
      continue;
    }
    ASSERT_EQ(std::memcmp(&want, &got, sizeof(T)), 0) << inputs[static_cast<std::size_t>(i)];
    ASSERT_EQ(back.at(i), static_cast<double>(static_cast<float>(want))) << i;
  }
}

TEST(Copy, Bf16RoundsToNearestEvenEverywhere) {
  expect_conversions_equal_scalar<bf16>(DType::kBF16);
}
TEST(Copy, F16RoundsToNearestEvenEverywhere) {
  expect_conversions_equal_scalar<f16>(DType::kF16);
}

TEST(Copy, KeepsNonFiniteValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Host x = Host::of(DType::kF32, {4}, {inf, -inf, nan, 1e30});
  for (const DType t : {DType::kBF16, DType::kF16}) {
    Host y(t, {4});
    cpu::copy(y, x);
    EXPECT_EQ(y.at(0), inf);
    EXPECT_EQ(y.at(1), -inf);
    EXPECT_TRUE(std::isnan(y.at(2)));
    EXPECT_EQ(y.at(3), t == DType::kF16 ? inf : rounded(t, 1e30));
  }
}

TEST(Copy, IntegersCopyButDoNotConvert) {
  const Host x = Host::of(DType::kI32, {3}, {1, -2, 3});
  Host y(DType::kI32, {3}), f(DType::kF32, {3}), wide(DType::kF64, {3});
  cpu::copy(y, x);
  expect_equal(y, {1, -2, 3});
  EXPECT_THROW(cpu::copy(f, x), Error);
  EXPECT_THROW(cpu::copy(wide, x), Error);
}

TEST(Elementwise, WrongShapesThrow) {
  const Host a(DType::kF32, {4}), b(DType::kF32, {5}), h(DType::kBF16, {4}), dy(DType::kF32, {2, 4});
  EXPECT_THROW(cpu::add(a, a, b), Error);
  EXPECT_THROW(cpu::add(a, a, h), Error);
  EXPECT_THROW(cpu::copy(a, b), Error);
  EXPECT_THROW(cpu::bias_grad(b, dy, Write::kOverwrite), Error);
  EXPECT_THROW(cpu::bias_grad(h, dy, Write::kOverwrite), Error);
  EXPECT_THROW(cpu::zero({}), Error);
}

TEST(Elementwise, ThreadsDoNotChangeTheColumnSums) {
  const Host dy = Host::random(DType::kBF16, {301, 700}, 1);
  expect_same_with_threads([&] {
    Host db(DType::kF32, {700});
    cpu::bias_grad(db, dy, Write::kOverwrite);
    return db;
  });
}

}  // namespace
}  // namespace drivetrain::testing

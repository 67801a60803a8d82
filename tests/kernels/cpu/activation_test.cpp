#include "kernels/cpu/activation.h"

#include <limits>

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

double gelu_reference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu_reference(double x) {
  return x / (1 + std::exp(-x));
}

class ActivationTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
  const Host x = Host::random(s.dtype, {s.rows, s.cols}, 1, -6, 6), dy = Host::random(s.dtype, {s.rows, s.cols}, 2);
  const Host gate_up = Host::random(s.dtype, {s.rows, 2 * s.cols}, 3, -4, 4);

  // f(gate, up) of every element, in the order of y.
  std::vector<double> swiglu_reference(const std::vector<double>& v) const {
    std::vector<double> y;
    for (std::int64_t m = 0; m < s.rows; ++m) {
      for (std::int64_t c = 0; c < s.cols; ++c) {
        const auto gate = static_cast<std::size_t>(m * 2 * s.cols + c), up = gate + static_cast<std::size_t>(s.cols);
        y.push_back(silu_reference(v[gate]) * v[up]);
      }
    }
    return y;
  }
};

TEST_P(ActivationTest, GeluMatchesReference) {
  Host y(s.dtype, {s.rows, s.cols});
  cpu::gelu(y, x);
  std::vector<double> want;
  for (const double v : x.values()) want.push_back(gelu_reference(v));
  expect_close(y, want, s.dtype == DType::kF32 ? 4 : 0.51, 1e-7);
}

TEST_P(ActivationTest, GeluGradMatchesFiniteDifferencesAndMayOverwriteItsInput) {
  std::vector<double> want;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const double h = 1e-5;
    want.push_back(dy.at(i) * (gelu_reference(x.at(i) + h) - gelu_reference(x.at(i) - h)) / (2 * h));
  }
  Host dx(s.dtype, {s.rows, s.cols});
  cpu::gelu_grad(dx, dy, x);
  expect_close(dx, want, s.dtype == DType::kF32 ? 4 : 0.51, 1e-6);
  Host in_place = dy;
  cpu::gelu_grad(in_place, in_place, x);
  EXPECT_EQ(in_place.bytes(), dx.bytes());
}

TEST_P(ActivationTest, SwigluMatchesReference) {
  Host y(s.dtype, {s.rows, s.cols});
  cpu::swiglu(y, gate_up);
  expect_close(y, swiglu_reference(gate_up.values()), s.dtype == DType::kF32 ? 4 : 0.51, 1e-7);
}

TEST_P(ActivationTest, SwigluGradMatchesFiniteDifferences) {
  Host dgate_up(s.dtype, {s.rows, 2 * s.cols});
  cpu::swiglu_grad(dgate_up, dy, gate_up);
  std::vector<double> want(static_cast<std::size_t>(dgate_up.count()));
  const std::vector<double> at = gate_up.values();
  for (std::int64_t m = 0; m < s.rows; ++m) {
    for (std::int64_t c = 0; c < s.cols; ++c) {
      const auto gate = static_cast<std::size_t>(m * 2 * s.cols + c), up = gate + static_cast<std::size_t>(s.cols);
      const double h = 1e-5, grad = dy.at(m * s.cols + c);
      want[gate] = grad * at[up] * (silu_reference(at[gate] + h) - silu_reference(at[gate] - h)) / (2 * h);
      want[up] = grad * silu_reference(at[gate]);
    }
  }
  expect_close(dgate_up, want, s.dtype == DType::kF32 ? 4 : 0.51, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ActivationTest, ::testing::ValuesIn(all_shapes()), shape_name);

TEST(Activation, LargeInputsSaturate) {
  const Host x = Host::of(DType::kF32, {6}, {100, -100, 1e20, -1e20, 1e38, -1e38}),
             ones = Host::filled(DType::kF32, {6}, 1);
  Host y(DType::kF32, {6}), dx(DType::kF32, {6});
  cpu::gelu(y, x);
  expect_equal(y, {100, 0, rounded(DType::kF32, 1e20), 0, rounded(DType::kF32, 1e38), 0});
  cpu::gelu_grad(dx, ones, x);
  expect_close(dx, {1, 0, 1, 0, 1, 0}, 1, 1e-30);
}

TEST(Activation, NanStaysNan) {
  const Host x = Host::filled(DType::kF32, {20}, std::numeric_limits<double>::quiet_NaN());
  const Host ones = Host::filled(DType::kF32, {10}, 1);
  Host y(DType::kF32, {20}), half(DType::kF32, {10}), dx(DType::kF32, {20});
  cpu::gelu(y, x);
  for (const double v : y.values()) EXPECT_TRUE(std::isnan(v));
  cpu::gelu_grad(dx, x, x);
  for (const double v : dx.values()) EXPECT_TRUE(std::isnan(v));
  cpu::swiglu(half, x);
  for (const double v : half.values()) EXPECT_TRUE(std::isnan(v));
}

// The stated bound of exp, seen through swiglu: silu(-x) at large x is -x e^-x. And directly: 2e-7 over the whole range.
TEST(Activation, SigmoidIsAccurateOverTheWholeRange) {
  constexpr std::int64_t kCount = 200'000;
  Host gate_up(DType::kF32, {kCount, 2}), y(DType::kF32, {kCount, 1});
  for (std::int64_t i = 0; i < kCount; ++i) {
    gate_up.put(2 * i, -85.0 + 170.0 * static_cast<double>(i) / kCount);
    gate_up.put(2 * i + 1, 1);
  }
  cpu::swiglu(y, gate_up);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double want = silu_reference(gate_up.at(2 * i));
    ASSERT_LE(std::abs(y.at(i) - want), 5e-7 * std::abs(want)) << gate_up.at(2 * i);
  }
}

TEST(Activation, WrongShapesThrow) {
  const Host a(DType::kF32, {2, 4}), b(DType::kF32, {2, 6}), h(DType::kBF16, {2, 4});
  EXPECT_THROW(cpu::gelu(a, b), Error);
  EXPECT_THROW(cpu::gelu(a, h), Error);
  EXPECT_THROW(cpu::gelu_grad(a, a, h), Error);
  EXPECT_THROW(cpu::swiglu(a, b), Error);
  EXPECT_THROW(cpu::swiglu_grad(b, a, b), Error);
}

}  // namespace
}  // namespace drivetrain::testing

#include "kernels/cpu/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "kernels/cpu/parallel.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::cpu {
namespace {

using testing::Host;

// Inputs are exact; only the result is rounded.
double tolerance(DType t) {
  return t == DType::kF32 ? 2e-6 : t == DType::kBF16 ? 0x1p-8 : 0x1p-10;
}

constexpr double kTiny = 0x1p-25;  // half of the smallest f16

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct Case {
  DType dtype;
  std::int64_t m, n, k;
  int threads;
};

class LinearTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { use_threads(GetParam().threads); }
  void TearDown() override { use_threads(1); }
  HostPool pool_;
  Linear linear_{pool_};
};

// SmolLM2's first token carries an activation of 25,765: one running sum would round all that follows to its size.
TEST(LinearSums, LongOnesKeepTheirDigits) {
  constexpr std::int64_t kRows = 8, kColumns = 32, kLength = 3072;
  const Host x = Host::random(DType::kF32, {kRows, kLength}, 1),
             w = Host::random(DType::kF32, {kColumns, kLength}, 2);
  Host bias = Host::filled(DType::kF32, {kColumns}, 0.5), y(DType::kF32, {kRows, kColumns});
  for (std::int64_t i = 0; i < kRows; ++i) x.view().as<float>()[i * kLength] = 25765.0f;
  HostPool pool;
  Linear(pool).forward(y, x, w, bias);
  const auto xs = x.values(), ws = w.values();
  double ours = 0, running = 0;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      double exact = 0.5;
      float sum = 0.5f;
      for (std::int64_t l = 0; l < kLength; ++l) {
        exact += xs[at(i * kLength + l)] * ws[at(j * kLength + l)];
        sum = std::fma(static_cast<float>(xs[at(i * kLength + l)]), static_cast<float>(ws[at(j * kLength + l)]), sum);
      }
      ours += std::abs(y.at(i * kColumns + j) - exact);
      running += std::abs(static_cast<double>(sum) - exact);
    }
  EXPECT_LT(ours, 0.5 * running);
}

TEST_P(LinearTest, ForwardAndDxMatchDoubles) {
  const auto [dtype, m, n, k, threads] = GetParam();
  const Host x = Host::random(dtype, {m, k}, 1);
  const Host w = Host::random(dtype, {n, k}, 2);
  const Host bias = Host::random(dtype, {n}, 3);
  const Host dy = Host::random(dtype, {m, n}, 4);
  const auto xs = x.values(), ws = w.values(), dys = dy.values();
  for (const DType out : {dtype, DType::kF32}) {
    Host y(out, {m, n}), plain(out, {m, n}), dx(out, {m, k});
    linear_.forward(y, x, w, bias);
    linear_.forward(plain, x, w, {});
    linear_.dx(dx, dy, w);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          sum += xs[at(i * k + l)] * ws[at(j * k + l)];
          size += std::abs(xs[at(i * k + l)] * ws[at(j * k + l)]);
        }
        ASSERT_NEAR(plain.at(i * n + j), sum, tolerance(out) * std::abs(sum) + 2e-6 * size + kTiny);
        ASSERT_NEAR(y.at(i * n + j), sum + bias.at(j),
                    tolerance(out) * std::abs(sum + bias.at(j)) + 2e-6 * (size + 1) + kTiny);
      }
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) {
        double sum = 0, size = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          sum += dys[at(i * n + j)] * ws[at(j * k + l)];
          size += std::abs(dys[at(i * n + j)] * ws[at(j * k + l)]);
        }
        ASSERT_NEAR(dx.at(i * k + l), sum, tolerance(out) * std::abs(sum) + 2e-6 * size + kTiny);
      }
  }
}

TEST_P(LinearTest, DwOverwritesOrAccumulates) {
  const auto [dtype, m, n, k, threads] = GetParam();
  const Host x = Host::random(dtype, {m, k}, 1);
  const Host dy = Host::random(dtype, {m, n}, 4);
  Host dw(DType::kF32, {n, k});
  const auto xs = x.values(), dys = dy.values();
  const auto expect = [&](double times) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) {
        double sum = 0, size = 0;
        for (std::int64_t i = 0; i < m; ++i) {
          sum += dys[at(i * n + j)] * xs[at(i * k + l)];
          size += std::abs(dys[at(i * n + j)] * xs[at(i * k + l)]);
        }
        ASSERT_NEAR(dw.at(j * k + l), times * sum, 4e-6 * times * size);
      }
  };
  linear_.dw(dw, dy, x, Write::kOverwrite);
  expect(1);
  linear_.dw(dw, dy, x, Write::kAccumulate);
  expect(2);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const std::tuple<std::int64_t, std::int64_t, std::int64_t> shapes[] = {
      {1, 1, 1},     {1, 64, 17},    {3, 17, 100},  {17, 3, 64},  {64, 100, 1},
      {100, 65, 33}, {129, 64, 128}, {70, 200, 80}, {66, 130, 98}};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (const auto& [m, n, k] : shapes)
      for (const int threads : {1, 2}) out.push_back({dtype, m, n, k, threads});
  // Longer than one block of the bf16 product in every direction.
  out.push_back({DType::kBF16, 1100, 64, 32, 1});
  out.push_back({DType::kBF16, 64, 16, 2100, 1});
  out.push_back({DType::kBF16, 64, 2100, 16, 1});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  const Case& c = test.param;
  return std::string(name(c.dtype)) + "_" + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + "_threads" + std::to_string(c.threads);
});

TEST(Linear, SeesNewWeightsAfterWeightsChanged) {
  HostPool pool;
  Linear linear(pool);
  Host w = Host::filled(DType::kF32, {64, 64}, 0), dy(DType::kF32, {4, 64}), dx(DType::kF32, {4, 64});
  for (int i = 0; i < 64; ++i) w.put(i * 64 + i, 1);
  for (int i = 0; i < 4 * 64; ++i) dy.put(i, i % 7);
  linear.dx(dx, dy, w);
  for (int i = 0; i < 4 * 64; ++i) EXPECT_EQ(dx.at(i), i % 7);
  for (int i = 0; i < 64; ++i) w.put(i * 64 + i, 4);
  linear.weights_changed();
  linear.dx(dx, dy, w);
  for (int i = 0; i < 4 * 64; ++i) EXPECT_EQ(dx.at(i), 4 * (i % 7));
}

TEST(Linear, OneWeightServesDifferentRowCounts) {
  HostPool pool;
  Linear linear(pool);
  const Host w = Host::random(DType::kF32, {80, 48}, 1);
  for (const std::int64_t m : {1, 300, 2, 65, 1}) {
    const Host dy = Host::random(DType::kF32, {m, 80}, 2);
    Host dx(DType::kF32, {m, 48});
    linear.dx(dx, dy, w);
    double sum = 0;
    for (int j = 0; j < 80; ++j) sum += dy.at((m - 1) * 80 + j) * w.at(j * 48 + 47);
    EXPECT_NEAR(dx.at(m * 48 - 1), sum, 1e-5);
  }
}

TEST(Linear, PackedBytesTellTheTruth) {
  HostPool pool;
  Linear linear(pool);
  EXPECT_EQ(linear.packed_weight_bytes(kPackRows + 1, 64, DType::kF32), 0u);
  const std::size_t said = linear.packed_weight_bytes(512, 2048, DType::kF32);
  EXPECT_GE(said, 512u * 2048u * 4u);
  const Host w = Host::random(DType::kF32, {512, 2048}, 1);
  const Host dy = Host::random(DType::kF32, {2, 512}, 2);
  Host dx(DType::kF32, {2, 2048});
  linear.dx(dx, dy, w);
  EXPECT_GE(pool.used_bytes(), said);
  EXPECT_LE(pool.used_bytes(), said + (4u << 20));  // block rounding and oneDNN's scratch
  linear.weights_changed();
  linear.weights_changed();  // nobody used the copy in between
  EXPECT_LE(pool.used_bytes(), 4u << 20);
}

TEST(Linear, RepeatsItselfBitForBit) {
  for (const int threads : {1, 2}) {
    use_threads(threads);
    const Host x = Host::random(DType::kBF16, {130, 96}, 1);
    const Host w = Host::random(DType::kBF16, {72, 96}, 2);
    Host first(DType::kF32, {130, 72}), again(DType::kF32, {130, 72});
    for (Host* y : {&first, &again}) {
      HostPool pool;
      Linear(pool).forward(*y, x, w, {});
    }
    for (int i = 0; i < 130 * 72; ++i) ASSERT_EQ(first.at(i), again.at(i));
  }
  use_threads(1);
}

TEST(Linear, EmptyBatch) {
  HostPool pool;
  Linear linear(pool);
  const Host x(DType::kF32, {0, 8}), w = Host::filled(DType::kF32, {4, 8}, 1), dy(DType::kF32, {0, 4});
  Host y(DType::kF32, {0, 4}), dw = Host::filled(DType::kF32, {4, 8}, 2);
  linear.forward(y, x, w, {});
  linear.dw(dw, dy, x, Write::kAccumulate);
  EXPECT_EQ(dw.at(3), 2);
  linear.dw(dw, dy, x, Write::kOverwrite);
  EXPECT_EQ(dw.at(3), 0);
}

TEST(Linear, RefusesWhatDoesNotFit) {
  HostPool pool;
  Linear linear(pool);
  Host y(DType::kF32, {2, 4}), x(DType::kF32, {2, 8}), w(DType::kF32, {4, 9}), half(DType::kBF16, {4, 8});
  EXPECT_THROW(linear.forward(y, x, w, {}), Error);
  EXPECT_THROW(linear.forward(y, x, half, {}), Error);
  EXPECT_THROW(linear.dx(x, y, w), Error);
  EXPECT_THROW(linear.dw(w, y, x, Write::kOverwrite), Error);
}

}  // namespace
}  // namespace drivetrain::cpu

#include "kernels/cpu/optimizer.h"

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr AdamWArgs kArgs{
    .lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .grad_scale = 0.5f, .step = 1};

struct State {
  double p, m = 0, v = 0;
  // One update in f64, in the order of torch.optim.AdamW.
  void update(double grad, const AdamWArgs& a) {
    const double g = grad * static_cast<double>(a.grad_scale), b1 = static_cast<double>(a.beta1);
    const double b2 = static_cast<double>(a.beta2), t = static_cast<double>(a.step), lr = static_cast<double>(a.lr);
    p *= 1 - lr * static_cast<double>(a.weight_decay);
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    p -=
        lr / (1 - std::pow(b1, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(b2, t)) + static_cast<double>(a.eps));
  }
};

class AdamWTest : public ::testing::TestWithParam<Shape> {};

TEST_P(AdamWTest, MatchesReferenceOverThreeSteps) {
  const Shape s = GetParam();
  const std::int64_t n = s.rows * s.cols;
  Host master = Host::random(DType::kF32, {n}, 1), m = Host::filled(DType::kF32, {n}, 0), v = m, value(s.dtype, {n});
  std::vector<State> want;
  for (std::int64_t i = 0; i < n; ++i) want.push_back({master.at(i)});
  AdamWArgs args = kArgs;
  for (args.step = 1; args.step <= 3; ++args.step) {
    const Host grad = Host::random(DType::kF32, {n}, 10 + static_cast<unsigned>(args.step));
    cpu::adamw(master, m, v, value, grad, args);
    for (std::int64_t i = 0; i < n; ++i) want[static_cast<std::size_t>(i)].update(grad.at(i), args);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const State& w = want[static_cast<std::size_t>(i)];
    ASSERT_NEAR(master.at(i), w.p, 3e-7) << i;
    ASSERT_NEAR(m.at(i), w.m, 1e-7) << i;
    ASSERT_NEAR(v.at(i), w.v, 1e-7) << i;
    ASSERT_EQ(value.at(i), rounded(s.dtype, master.at(i))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AdamWTest, ::testing::ValuesIn(all_shapes()), shape_name);

// A bf16 weight alone would stay at 1: 1 - 0.001 rounds to 1.
TEST(AdamW, SmallUpdatesReachTheMaster) {
  Host master = Host::filled(DType::kF32, {1}, 1), m = Host::filled(DType::kF32, {1}, 0), v = m;
  Host value = Host::filled(DType::kBF16, {1}, 1);
  const Host grad = Host::filled(DType::kF32, {1}, 1);
  AdamWArgs args{
      .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0, .grad_scale = 1, .step = 1};
  for (; args.step <= 10; ++args.step) cpu::adamw(master, m, v, value, grad, args);
  EXPECT_NEAR(master.at(0), 0.99, 1e-6);
  EXPECT_EQ(value.at(0), 0.98828125);
}

TEST(AdamW, ZeroGradientLeavesTheWeightWithoutNan) {
  Host master = Host::random(DType::kF32, {100}, 1), m = Host::filled(DType::kF32, {100}, 0), v = m,
       value(DType::kBF16, {100});
  const std::vector<double> before = master.values();
  AdamWArgs args = kArgs;
  args.weight_decay = 0;
  cpu::adamw(master, m, v, value, Host::filled(DType::kF32, {100}, 0), args);
  expect_equal(master, before);
  expect_equal(m, std::vector<double>(100, 0.0));
}

TEST(AdamW, DecayIsDecoupled) {
  Host master = Host::filled(DType::kF32, {3}, 2), m = Host::filled(DType::kF32, {3}, 0), v = m;
  const AdamWArgs args{
      .lr = 0.5f, .beta1 = 0.5f, .beta2 = 0.5f, .eps = 1, .weight_decay = 0.25f, .grad_scale = 1, .step = 1};
  cpu::adamw(master, m, v, {}, Host::filled(DType::kF32, {3}, 0), args);
  expect_equal(master, {1.75, 1.75, 1.75});
  // m^ = g = 1, sqrt(v^) = 1: p = 1.75 * 0.875 - 0.5 / (1 + 1).
  Host fresh = Host::filled(DType::kF32, {3}, 0), fresh2 = fresh;
  cpu::adamw(master, fresh, fresh2, {}, Host::filled(DType::kF32, {3}, 1), args);
  expect_close(master, {1.28125, 1.28125, 1.28125}, 1, 0);
}

TEST(AdamW, ValueMayBeTheMaster) {
  const Host start = Host::random(DType::kF32, {77}, 1), grad = Host::random(DType::kF32, {77}, 2);
  Host alone = start, shared = start, m = Host::filled(DType::kF32, {77}, 0), v = m, m2 = m, v2 = m;
  cpu::adamw(alone, m, v, {}, grad, kArgs);
  cpu::adamw(shared, m2, v2, shared, grad, kArgs);
  EXPECT_EQ(alone.bytes(), shared.bytes());
}

TEST(AdamW, ThreadsDoNotChangeTheResult) {
  const Host start = Host::random(DType::kF32, {100'003}, 1), grad = Host::random(DType::kF32, {100'003}, 2);
  expect_same_with_threads([&] {
    Host p = start, m = Host::filled(DType::kF32, {100'003}, 0), v = m;
    cpu::adamw(p, m, v, {}, grad, kArgs);
    return p;
  });
}

// Large values bypass the cache where they are aligned, which must not show.
TEST(AdamW, LargeValuesAreWrittenAtAnyAlignment) {
  constexpr std::int64_t kCount = (std::int64_t{1} << 20) + 5;
  const Host grad = Host::filled(DType::kF32, {kCount}, 1), zeros = Host::filled(DType::kF32, {kCount}, 0);
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const std::int64_t shift : {0, 1}) {
      const Host memory(t, {kCount + 32});
      const auto address = reinterpret_cast<std::uintptr_t>(memory.view().data);
      const auto aligned = static_cast<std::int64_t>((64 - address % 64) % 64 / size_of(t));
      const Tensor value = memory.view().flat(aligned + shift, kCount);
      Host master = Host::filled(DType::kF32, {kCount}, 1), m = zeros, v = zeros;
      cpu::adamw(master, m, v, value, grad, kArgs);
      const double want = rounded(t, master.at(0));
      for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(get(value, i), want) << i;
    }
  }
}

TEST(AdamW, WrongArgumentsThrow) {
  const Host p(DType::kF32, {4}), short_one(DType::kF32, {3}), half(DType::kBF16, {4});
  EXPECT_THROW(cpu::adamw(p, p, p, short_one, p, kArgs), Error);
  EXPECT_THROW(cpu::adamw(p, p, p, {}, half, kArgs), Error);
  AdamWArgs args = kArgs;
  args.step = 0;
  EXPECT_THROW(cpu::adamw(p, p, p, {}, p, args), Error);
}

TEST(SumSquares, ExactOnIntegersAndAdds) {
  for (const std::int64_t n : {0, 1, 3, 17, 100, 4096, 4097, 1'300'001}) {
    Host x(DType::kF32, {n}), out = Host::filled(DType::kF64, {1}, 0.5);
    double want = 0.5;
    for (std::int64_t i = 0; i < n; ++i) {
      x.put(i, static_cast<double>(i % 13 - 6));
      want += x.at(i) * x.at(i);
    }
    cpu::sum_squares(out, x);
    EXPECT_EQ(out.at(0), want) << n;
  }
}

TEST(SumSquares, DoesNotOverflowAtTheEndOfF32) {
  Host out = Host::filled(DType::kF64, {1}, 0);
  cpu::sum_squares(out, Host::filled(DType::kF32, {4}, 0x1p100));
  EXPECT_EQ(out.at(0), 0x1p202);
}

TEST(SumSquares, ThreadsDoNotChangeTheResult) {
  const Host x = Host::random(DType::kF32, {300'007}, 1);
  expect_same_with_threads([&] {
    Host out = Host::filled(DType::kF64, {1}, 0);
    cpu::sum_squares(out, x);
    return out;
  });
}

}  // namespace
}  // namespace drivetrain::testing

#include "kernels/cpu/norm.h"

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr double kEps = 1e-5;

// One f64 normalisation of `rows` rows: y = w (x - mean) / std + b, without mean and bias for RMSNorm.
struct Reference {
  std::int64_t rows, cols;
  bool centered;
  std::vector<double> operator()(const std::vector<double>& x, const std::vector<double>& w,
                                 const std::vector<double>& b) const {
    std::vector<double> y(x.size());
    for (std::int64_t m = 0; m < rows; ++m) {
      double mean = 0, square = 0;
      for (std::int64_t c = 0; c < cols; ++c) mean += x[index(m, c)] / static_cast<double>(cols);
      if (!centered) mean = 0;
      for (std::int64_t c = 0; c < cols; ++c)
        square += std::pow(x[index(m, c)] - mean, 2) / static_cast<double>(cols);
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto i = static_cast<std::size_t>(c);
        y[index(m, c)] = w[i] * (x[index(m, c)] - mean) / std::sqrt(square + kEps) + (centered ? b[i] : 0);
      }
    }
    return y;
  }
  std::size_t index(std::int64_t m, std::int64_t c) const { return static_cast<std::size_t>(m * cols + c); }
};

class NormTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
  const Host x = Host::random(s.dtype, {s.rows, s.cols}, 1, -2, 3),
             delta = Host::random(s.dtype, {s.rows, s.cols}, 2);
  const Host w = Host::random(s.dtype, {s.cols}, 3, 0.5, 1.5), b = Host::random(s.dtype, {s.cols}, 4);
  const Host dy = Host::random(s.dtype, {s.rows, s.cols}, 5);
  Host y{s.dtype, {s.rows, s.cols}}, sum{s.dtype, {s.rows, s.cols}};
  Host mean{DType::kF32, {s.rows}}, inv{DType::kF32, {s.rows}};

  void check_grads(const Reference& f, const Host& dx, const Host& dw, const Host* db) const {
    const auto loss = [&](const auto& xv, const auto& wv, const auto& bv) { return dot(f(xv, wv, bv), dy.values()); };
    auto want = slope([&](const auto& v) { return loss(v, w.values(), b.values()); }, x.values());
    for (double& g : want) g += 1;
    const double slack = s.dtype == DType::kF32 ? 2e-5 : 4 * epsilon(s.dtype);
    expect_close(dx, want, 2, slack);
    expect_close(dw, slope([&](const auto& v) { return loss(x.values(), v, b.values()); }, w.values()), 1e-4, slack);
    if (db != nullptr) {
      expect_close(*db, slope([&](const auto& v) { return loss(x.values(), w.values(), v); }, b.values()), 8, 1e-6);
    }
  }
};

TEST_P(NormTest, RmsNormMatchesReference) {
  cpu::rms_norm(y, inv, {}, x, {}, w, static_cast<float>(kEps));
  expect_close(y, Reference{s.rows, s.cols, false}(x.values(), w.values(), b.values()), 2, 1e-6);
}

TEST_P(NormTest, RmsNormRoundsTheNormalisedValueBeforeTheProduct) {
  cpu::rms_norm(y, inv, {}, x, {}, w, static_cast<float>(kEps));
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const auto normal = static_cast<float>(x.at(i)) * static_cast<float>(inv.at(i / s.cols));
    const double want = rounded(
        s.dtype,
        static_cast<double>(static_cast<float>(rounded(s.dtype, static_cast<double>(normal)) * w.at(i % s.cols))));
    ASSERT_EQ(y.at(i), want) << i;
  }
}

TEST_P(NormTest, ResidualSumIsRoundedWrittenAndNormalised) {
  Host y2{s.dtype, {s.rows, s.cols}};
  cpu::rms_norm(y, inv, sum, x, delta, w, static_cast<float>(kEps));
  for (std::int64_t i = 0; i < sum.count(); ++i) ASSERT_EQ(sum.at(i), rounded(s.dtype, x.at(i) + delta.at(i)));
  cpu::rms_norm(y2, inv, {}, sum, {}, w, static_cast<float>(kEps));
  EXPECT_EQ(y.bytes(), y2.bytes());
  cpu::layer_norm(y, mean, inv, sum, x, delta, w, b, static_cast<float>(kEps));
  cpu::layer_norm(y2, mean, inv, {}, sum, {}, w, b, static_cast<float>(kEps));
  EXPECT_EQ(y.bytes(), y2.bytes());
}

TEST_P(NormTest, LayerNormMatchesReference) {
  cpu::layer_norm(y, mean, inv, {}, x, {}, w, b, static_cast<float>(kEps));
  expect_close(y, Reference{s.rows, s.cols, true}(x.values(), w.values(), b.values()), 1, 2e-6);
}

TEST_P(NormTest, RmsNormGradMatchesFiniteDifferences) {
  Host dx = Host::filled(s.dtype, {s.rows, s.cols}, 1), dw{DType::kF32, {s.cols}};
  cpu::rms_norm(y, inv, {}, x, {}, w, static_cast<float>(kEps));
  cpu::rms_norm_grad(dx, dw, dy, x, w, inv, Write::kOverwrite);
  check_grads({s.rows, s.cols, false}, dx, dw, nullptr);
}

TEST_P(NormTest, LayerNormGradMatchesFiniteDifferences) {
  Host dx = Host::filled(s.dtype, {s.rows, s.cols}, 1), dw{DType::kF32, {s.cols}}, db{DType::kF32, {s.cols}};
  cpu::layer_norm(y, mean, inv, {}, x, {}, w, b, static_cast<float>(kEps));
  cpu::layer_norm_grad(dx, dw, db, dy, x, w, mean, inv, Write::kOverwrite);
  if (s.cols > 1) check_grads({s.rows, s.cols, true}, dx, dw, &db);
}

TEST_P(NormTest, AccumulatingAddsToTheWeightGradients) {
  Host dx = Host::filled(s.dtype, {s.rows, s.cols}, 0), once{DType::kF32, {s.cols}}, db{DType::kF32, {s.cols}};
  Host twice = Host::filled(DType::kF32, {s.cols}, 0.5), db2 = Host::filled(DType::kF32, {s.cols}, 0.5);
  cpu::layer_norm(y, mean, inv, {}, x, {}, w, b, static_cast<float>(kEps));
  cpu::layer_norm_grad(dx, once, db, dy, x, w, mean, inv, Write::kOverwrite);
  cpu::layer_norm_grad(dx, twice, db2, dy, x, w, mean, inv, Write::kAccumulate);
  for (std::int64_t c = 0; c < s.cols; ++c) {
    ASSERT_EQ(twice.at(c), rounded(DType::kF32, once.at(c) + 0.5));
    ASSERT_EQ(db2.at(c), rounded(DType::kF32, db.at(c) + 0.5));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormTest, ::testing::ValuesIn(all_shapes()), shape_name);

TEST(Norm, ExactOnPowersOfTwo) {
  const Host x = Host::of(DType::kF32, {1, 4}, {2, -2, 2, -2}), w = Host::of(DType::kF32, {4}, {1, 2, 4, 8});
  const Host b = Host::of(DType::kF32, {4}, {1, 1, 1, 1});
  Host y{DType::kF32, {1, 4}}, mean{DType::kF32, {1}}, inv{DType::kF32, {1}};
  cpu::rms_norm(y, inv, {}, x, {}, w, 0);
  expect_equal(y, {1, -2, 4, -8});
  expect_equal(inv, {0.5});
  cpu::layer_norm(y, mean, inv, {}, x, {}, w, b, 0);
  expect_equal(y, {2, -1, 5, -7});
  expect_equal(mean, {0});
}

TEST(Norm, RmsNormWeightGradientUsesTheRoundedNormalisedValue) {
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Host x = Host::random(t, {1, 40}, 1), dy = Host::random(t, {1, 40}, 2), w = Host::random(t, {40}, 3);
    const Host inv = Host::of(DType::kF32, {1}, {1.7});
    Host dx = Host::filled(t, {1, 40}, 0), dw{DType::kF32, {40}};
    cpu::rms_norm_grad(dx, dw, dy, x, w, inv, Write::kOverwrite);
    for (std::int64_t c = 0; c < 40; ++c) {
      const double normal = rounded(t, static_cast<double>(static_cast<float>(x.at(c)) * 1.7f));
      ASSERT_EQ(dw.at(c), rounded(DType::kF32, dy.at(c) * normal)) << name(t) << c;
    }
  }
}

TEST(Norm, ThreadsDoNotChangeTheResult) {
  const Host x = Host::random(DType::kBF16, {100, 768}, 1), w = Host::random(DType::kBF16, {768}, 2);
  const Host dy = Host::random(DType::kBF16, {100, 768}, 3);
  expect_same_with_threads([&] {
    Host y{DType::kBF16, {100, 768}}, inv{DType::kF32, {100}}, dw{DType::kF32, {768}};
    cpu::rms_norm(y, inv, {}, x, {}, w, 1e-5f);
    cpu::rms_norm_grad(y, dw, dy, x, w, inv, Write::kOverwrite);
    return dw;
  });
}

TEST(Norm, ErrorsNameOpAndTensor) {
  const Host x(DType::kBF16, {2, 8}), w(DType::kF32, {8}), inv(DType::kF32, {2});
  try {
    cpu::rms_norm(x, inv, {}, x, {}, w, 1e-5f);
    FAIL() << "accepted a weight of another dtype";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kLogic);
    EXPECT_STREQ(e.what(), "rms_norm: w is f32[8], wanted bf16 with 8 elements");
  }
}

}  // namespace
}  // namespace drivetrain::testing

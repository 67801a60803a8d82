#include "kernels/cpu/embedding.h"

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr std::int64_t kVocab = 11;

class EmbeddingTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
  const std::int64_t tokens = s.rows * 4;
  const Host table = Host::random(s.dtype, {kVocab, s.cols}, 1);
  Host ids{DType::kI32, {s.rows, 4}}, dy{s.dtype, {tokens, s.cols}};
  void SetUp() override {
    // Ids repeat, and some lie outside either half of the vocabulary.
    for (std::int64_t i = 0; i < tokens; ++i) ids.put(i, static_cast<double>(i * 5 % kVocab));
    for (std::int64_t i = 0; i < dy.count(); ++i) dy.put(i, static_cast<double>(i * 3 % 13 - 6));
  }
};

TEST_P(EmbeddingTest, SlicesAddUpToTheWholeTable) {
  Host whole(s.dtype, {tokens, s.cols}), y(s.dtype, {tokens, s.cols});
  cpu::embedding(whole, ids, table, 0, Write::kOverwrite);
  for (std::int64_t m = 0; m < tokens; ++m) {
    for (std::int64_t c = 0; c < s.cols; ++c) {
      ASSERT_EQ(whole.at(m * s.cols + c), table.at(static_cast<std::int64_t>(ids.at(m)) * s.cols + c));
    }
  }
  cpu::embedding(y, ids, table.view().rows(0, 6), 0, Write::kOverwrite);
  for (std::int64_t m = 0; m < tokens; ++m) {
    if (ids.at(m) >= 6) {
      for (std::int64_t c = 0; c < s.cols; ++c) ASSERT_EQ(y.at(m * s.cols + c), 0);
    }
  }
  cpu::embedding(y, ids, table.view().rows(6, kVocab), 6, Write::kAccumulate);
  expect_equal(y, whole.values());
}

TEST_P(EmbeddingTest, AccumulateRoundsTheSum) {
  Host y = Host::random(s.dtype, {tokens, s.cols}, 9);
  const std::vector<double> before = y.values();
  cpu::embedding(y, ids, table, 0, Write::kAccumulate);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const double row = table.at(static_cast<std::int64_t>(ids.at(i / s.cols)) * s.cols + i % s.cols);
    ASSERT_EQ(y.at(i), rounded(s.dtype, before[static_cast<std::size_t>(i)] + row));
  }
}

TEST_P(EmbeddingTest, GradScattersIntoTheSliceExactly) {
  Host dtable(DType::kF32, {5, s.cols});
  std::vector<double> want(static_cast<std::size_t>(dtable.count()), 0.0);
  for (std::int64_t i = 0; i < dy.count(); ++i) {
    const auto id = static_cast<std::int64_t>(ids.at(i / s.cols)) - 6;
    if (id >= 0) want[static_cast<std::size_t>(id * s.cols + i % s.cols)] += dy.at(i);
  }
  cpu::embedding_grad(dtable, ids, dy, 6, Write::kOverwrite);
  expect_equal(dtable, want);
  cpu::embedding_grad(dtable, ids, dy, 6, Write::kAccumulate);
  for (double& w : want) w *= 2;
  expect_equal(dtable, want);
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmbeddingTest, ::testing::ValuesIn(all_shapes()), shape_name);

TEST(Embedding, ThreadsDoNotChangeTheGradient) {
  const Host dy = Host::random(DType::kBF16, {500, 200}, 1);
  Host ids(DType::kI32, {500});
  for (std::int64_t i = 0; i < 500; ++i) ids.put(i, static_cast<double>(i * i % 40));
  expect_same_with_threads([&] {
    Host dtable(DType::kF32, {40, 200});
    cpu::embedding_grad(dtable, ids, dy, 0, Write::kOverwrite);
    return dtable;
  });
}

TEST(Embedding, IdsBelowTheSliceCountAsZero) {
  const Host ids = Host::of(DType::kI32, {2}, {-1, 2}), table = Host::filled(DType::kF32, {2, 3}, 7);
  Host y(DType::kF32, {2, 3});
  cpu::embedding(y, ids, table, 0, Write::kOverwrite);
  expect_equal(y, {0, 0, 0, 0, 0, 0});
}

TEST(Embedding, WrongShapesThrow) {
  const Host ids(DType::kI32, {2}), wide(DType::kI64, {2}), table(DType::kF32, {4, 3}), y(DType::kF32, {2, 3});
  const Host half(DType::kBF16, {4, 3}), narrow(DType::kF32, {2, 2});
  EXPECT_THROW(cpu::embedding(y, wide, table, 0, Write::kOverwrite), Error);
  EXPECT_THROW(cpu::embedding(y, ids, half, 0, Write::kOverwrite), Error);
  EXPECT_THROW(cpu::embedding(narrow, ids, table, 0, Write::kOverwrite), Error);
  EXPECT_THROW(cpu::embedding_grad(half, ids, y, 0, Write::kOverwrite), Error);
}

}  // namespace
}  // namespace drivetrain::testing

#include "kernels/cpu/reduce.h"

#include <limits>

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

using cpu::Reduction;

struct Case {
  DType dtype;
  std::int64_t count;
  std::size_t ranks;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI32, DType::kI64, DType::kU8}) {
    for (const std::int64_t count : {0, 1, 3, 17, 257, 5003}) {
      for (const std::size_t ranks : {1, 2, 3, 4}) cases.push_back({t, count, ranks});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(name(info.param.dtype)) + "_" + std::to_string(info.param.count) + "x" +
         std::to_string(info.param.ranks);
}

// Small non-negative integers are exact in every dtype, and so are their sums.
double value(std::size_t rank, std::int64_t i) {
  return static_cast<double>((i * 7 + static_cast<std::int64_t>(rank) * 13) % 29);
}

double expected(const Case& c, Reduction op, std::int64_t i) {
  double result = value(0, i);
  for (std::size_t r = 1; r < c.ranks; ++r) {
    const double x = value(r, i);
    result = op == Reduction::kMax ? std::max(result, x) : op == Reduction::kMin ? std::min(result, x) : result + x;
  }
  if (op != Reduction::kAverage) return result;
  result /= static_cast<double>(c.ranks);
  const bool integer = c.dtype == DType::kI32 || c.dtype == DType::kI64 || c.dtype == DType::kU8;
  return integer ? std::trunc(result) : rounded(c.dtype, result);
}

class ReduceTest : public ::testing::TestWithParam<Case> {
 protected:
  const Case c = GetParam();
  std::vector<Host> buffers;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> dsts;

  void SetUp() override {
    for (std::size_t r = 0; r < c.ranks; ++r) {
      Host h(c.dtype, {c.count});
      for (std::int64_t i = 0; i < c.count; ++i) h.put(i, value(r, i));
      buffers.push_back(h);
    }
    for (const Host& h : buffers) {
      sources.push_back(h.view().data);
      dsts.push_back(h.view().data);
    }
  }
};

TEST_P(ReduceTest, IntoAnotherBuffer) {
  for (const Reduction op : {Reduction::kSum, Reduction::kMax, Reduction::kMin, Reduction::kAverage}) {
    Host out(c.dtype, {c.count});
    cpu::reduce(out.view().data, sources, c.dtype, op, c.count);
    for (std::int64_t i = 0; i < c.count; ++i) ASSERT_EQ(out.at(i), expected(c, op, i)) << i;
  }
}

TEST_P(ReduceTest, InPlaceIntoEverySource) {
  cpu::reduce(dsts, sources, c.dtype, Reduction::kSum, c.count);
  for (const Host& h : buffers) {
    for (std::int64_t i = 0; i < c.count; ++i) ASSERT_EQ(h.at(i), expected(c, Reduction::kSum, i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest, ::testing::ValuesIn(all_cases()), case_name);

TEST(Reduce, SixteenBitTypesAccumulateInF32AndRoundOnce) {
  // 256 + 1 + 1: in bf16 each 1 alone is lost (spacing 2), together they are not.
  const Host a = Host::of(DType::kBF16, {1}, {256}), b = Host::of(DType::kBF16, {1}, {1}), d = b;
  const std::vector<const std::byte*> sources{a.view().data, b.view().data, d.view().data};
  Host out(DType::kBF16, {1});
  cpu::reduce(out.view().data, sources, DType::kBF16, Reduction::kSum, 1);
  EXPECT_EQ(out.at(0), 258);
}

TEST(Reduce, NanWinsMaxAndMin) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    const Host a = Host::filled(t, {40}, 1), b = Host::filled(t, {40}, nan), d = Host::filled(t, {40}, 2);
    for (const Reduction op : {Reduction::kMax, Reduction::kMin}) {
      const std::vector<const std::byte*> nan_first{b.view().data, a.view().data, d.view().data};
      const std::vector<const std::byte*> nan_inside{a.view().data, b.view().data, d.view().data};
      for (const auto& sources : {nan_first, nan_inside}) {
        Host out(t, {40});
        cpu::reduce(out.view().data, sources, t, op, 40);
        for (std::int64_t i = 0; i < 40; ++i) ASSERT_TRUE(std::isnan(out.at(i))) << name(t) << i;
      }
    }
  }
}

TEST(Reduce, LargeResultsThatBypassTheCacheAreExactAtAnyAlignment) {
  constexpr std::int64_t kCount = 1'100'000;
  for (const std::int64_t shift : {0, 1, 5}) {
    const Host a = Host::random(DType::kBF16, {kCount + shift}, 1),
               b = Host::random(DType::kBF16, {kCount + shift}, 2);
    const Tensor ta = a.view().flat(shift, kCount), tb = b.view().flat(0, kCount);
    std::vector<double> want;
    for (std::int64_t i = 0; i < kCount; ++i) want.push_back(rounded(DType::kBF16, get(ta, i) + get(tb, i)));
    const Host elsewhere(DType::kBF16, {kCount + 3});
    const Tensor out = elsewhere.view().flat(3, kCount);
    const std::vector<const std::byte*> sources{ta.data, tb.data};
    const std::vector<std::byte*> dsts{ta.data, out.data};
    cpu::reduce(dsts, sources, DType::kBF16, Reduction::kSum, kCount);
    expect_equal(ta, want);
    expect_equal(out, want);
  }
}

TEST(Reduce, WithoutSourceItThrows) {
  Host out(DType::kF32, {4});
  EXPECT_THROW(cpu::reduce(out.view().data, {}, DType::kF32, Reduction::kSum, 4), Error);
}

}  // namespace
}  // namespace drivetrain::testing

#include "kernels/cpu/dropout.h"

#include <limits>

#include "kernels/philox.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

constexpr Dropout kDropout{.p = 0.25f, .seed = 0x123456789abcdefull, .site = 3};

std::vector<float> scales(std::int64_t key, std::int64_t begin, std::int64_t count, const Dropout& d) {
  std::vector<float> out(static_cast<std::size_t>(count), -1.0f);
  cpu::keep_scales(out.data(), key, begin, count, d);
  return out;
}

TEST(KeepScales, FollowThePublishedBits) {
  const std::int64_t key = -5'000'000'001;
  const auto got = scales(key, 0, 300, kDropout);
  const auto bits = static_cast<std::uint64_t>(key);
  for (std::uint32_t c = 0; c < 300; ++c) {
    const auto words = philox({c / 4, 3, static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)},
                              philox_key(kDropout.seed));
    ASSERT_EQ(got[c], words[c % 4] < 0x40000000u ? 0.0f : 1.0f / 0.75f) << c;
  }
}

TEST(KeepScales, DoNotDependOnHowARowIsCut) {
  const auto whole = scales(42, 0, 200, kDropout);
  for (const std::int64_t begin : {0, 1, 2, 3, 5, 64, 77, 130}) {
    for (const std::int64_t count : {0, 1, 2, 3, 4, 17, 63, 64, 65}) {
      const auto part = scales(42, begin, count, kDropout);
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(begin + i)]) << begin << " " << i;
      }
    }
  }
}

TEST(KeepScales, WorkAtFarColumns) {
  const std::int64_t far = (std::int64_t{1} << 33) + 2;
  const auto got = scales(1, far, 70, kDropout);
  for (std::int64_t i = 0; i < 70; ++i) {
    const auto words = philox({static_cast<std::uint32_t>((far + i) / 4), 3, 1, 0}, philox_key(kDropout.seed));
    ASSERT_EQ(got[static_cast<std::size_t>(i)] == 0, words[static_cast<std::size_t>((far + i) % 4)] < 0x40000000u);
  }
}

TEST(KeepScales, SeedSiteAndKeyEachChangeTheMask) {
  const auto base = scales(1, 0, 256, kDropout);
  Dropout other_seed = kDropout, other_site = kDropout;
  other_seed.seed ^= std::uint64_t{1} << 40;
  other_site.site = 4;
  EXPECT_NE(base, scales(1, 0, 256, other_seed));
  EXPECT_NE(base, scales(1, 0, 256, other_site));
  EXPECT_NE(base, scales(2, 0, 256, kDropout));
  EXPECT_EQ(base, scales(1, 0, 256, kDropout));
}

TEST(KeepScales, KeepTheRightShare) {
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    double kept = 0;
    for (std::int64_t key = 0; key < 100; ++key) {
      for (const float s : scales(key, 0, 2000, {.p = p, .seed = 9, .site = 0})) kept += s > 0;
    }
    EXPECT_NEAR(kept / 200'000, 1 - static_cast<double>(p), 0.005);
  }
}

class DropoutTest : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape s = GetParam();
  const Host x = Host::random(s.dtype, {s.rows, s.cols}, 1);
  Host keys{DType::kI64, {s.rows}};
  void SetUp() override {
    for (std::int64_t m = 0; m < s.rows; ++m) keys.put(m, static_cast<double>(m * 1000 - 7));
  }
};

TEST_P(DropoutTest, AppliesTheMaskInPlaceAndRowByRow) {
  Host y(s.dtype, {s.rows, s.cols}), split(s.dtype, {s.rows, s.cols}), in_place = x;
  cpu::dropout(y, x, keys, kDropout);
  for (std::int64_t m = 0; m < s.rows; ++m) {
    const auto mask = scales(m * 1000 - 7, 0, s.cols, kDropout);
    for (std::int64_t c = 0; c < s.cols; ++c) {
      const double scale = static_cast<double>(mask[static_cast<std::size_t>(c)]);
      ASSERT_EQ(y.at(m * s.cols + c), rounded(s.dtype, x.at(m * s.cols + c) * scale));
    }
    const Tensor row = x.view().rows(m, m + 1);
    cpu::dropout(split.view().rows(m, m + 1), row, keys.view().rows(m, m + 1), kDropout);
  }
  cpu::dropout(in_place, in_place, keys, kDropout);
  EXPECT_EQ(y.bytes(), in_place.bytes());
  EXPECT_EQ(y.bytes(), split.bytes());
}

TEST_P(DropoutTest, OffIsACopy) {
  Host y(s.dtype, {s.rows, s.cols});
  cpu::dropout(y, x, {}, {});
  EXPECT_EQ(y.bytes(), x.bytes());
}

INSTANTIATE_TEST_SUITE_P(Shapes, DropoutTest, ::testing::ValuesIn(all_shapes()), shape_name);

TEST(Dropout, ADroppedInfinityIsZero) {
  const Host x = Host::filled(DType::kF32, {1, 64}, std::numeric_limits<double>::infinity());
  const Host key = Host::filled(DType::kI64, {1}, 0);
  Host y(DType::kF32, {1, 64});
  cpu::dropout(y, x, key, kDropout);
  int zeros = 0;
  for (const double v : y.values()) {
    EXPECT_FALSE(std::isnan(v));
    zeros += v == 0;
  }
  EXPECT_GT(zeros, 4);
}

TEST(Dropout, WrongArgumentsThrow) {
  const Host x(DType::kF32, {2, 4}), keys(DType::kI64, {2}), wrong(DType::kI32, {2});
  EXPECT_THROW(cpu::dropout(x, x, wrong, kDropout), Error);
  EXPECT_THROW(cpu::dropout(x, x, keys, {.p = 1}), Error);
  EXPECT_THROW(cpu::dropout(x, x, keys, {.p = -0.5f}), Error);
}

}  // namespace
}  // namespace drivetrain::testing

#include "kernels/philox.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

// Known answers published with the Random123 library of the paper's authors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysInsideTheOpenInterval) {
  EXPECT_EQ(uniform01(0), 0x1p-24f);
  EXPECT_EQ(uniform01(0xffffffffu), 1.0f - 0x1p-24f);
}

TEST(Philox, NormalsHaveMeanZeroAndVarianceOne) {
  constexpr std::uint32_t kDraws = 50'000;
  double sum = 0, squares = 0, fourth = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    for (const float x : normal4(philox({i, 0, 0, 0}, philox_key(7)))) {
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
  }
  constexpr double kCount = 4.0 * kDraws;
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.05);
}

TEST(Philox, NormalIsFiniteAtTheEnds) {
  for (const std::uint32_t word : {0u, 0xffffffffu}) {
    for (const float x : normal4({word, word, word, word})) EXPECT_TRUE(std::isfinite(x));
  }
}

}  // namespace
}  // namespace drivetrain

#include "kernels/cpu/peak.h"

#include <gtest/gtest.h>

#include <ctime>

#include "kernels/cpu/isa.h"

namespace drivetrain::cpu {
namespace {

TEST(Peak, IsPlausibleAndQuick) {
  const std::clock_t begin = std::clock();
  const double f32 = measure_peak_flops(DType::kF32, 1);
  const double elapsed_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GT(f32, 1e9);
  EXPECT_LT(f32, 1e12);
  EXPECT_LT(elapsed_s, 0.06);
  const double bf16 = measure_peak_flops(DType::kBF16, 1);
  if (has_bf16_dot())
    EXPECT_GT(bf16, 1.5 * f32);
  else
    EXPECT_NEAR(bf16 / f32, 1, 0.3);
}

}  // namespace
}  // namespace drivetrain::cpu

#include "kernels/cpu/peak.h"

#include <gtest/gtest.h>

#include <ctime>

namespace drivetrain::cpu {
namespace {

TEST(Peak, IsPlausibleAndQuick) {
  const std::clock_t begin = std::clock();
  const double f32 = measure_peak_flops(DType::kF32, 1);
  const double elapsed_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GT(f32, 1e9);
  EXPECT_LT(f32, 1e12);
  EXPECT_LT(elapsed_s, 0.06);
  // Twice f32 on AMD's processors; on Intel's the dot product is slower than f32, which then is the peak.
  EXPECT_GT(measure_peak_flops(DType::kBF16, 1), 0.7 * f32);
}

}  // namespace
}  // namespace drivetrain::cpu

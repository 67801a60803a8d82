#include "kernels/cpu/peak.h"

#include <gtest/gtest.h>

#include <chrono>

#include "kernels/cpu/isa.h"

namespace drivetrain::cpu {
namespace {

TEST(Peak, IsPlausibleAndQuick) {
  const auto begin = std::chrono::steady_clock::now();
  const double f32 = measure_peak_flops(DType::kF32, 1);
  const double elapsed_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(f32, 1e9);
  EXPECT_LT(f32, 1e12);
  EXPECT_LT(elapsed_ms, 200);  // 30 on an idle machine
  const double bf16 = measure_peak_flops(DType::kBF16, 1);
  if (has_bf16_dot())
    EXPECT_GT(bf16, 1.5 * f32);
  else
    EXPECT_NEAR(bf16 / f32, 1, 0.3);
}

}  // namespace
}  // namespace drivetrain::cpu

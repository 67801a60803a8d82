#include "runtime/optim/loss_scaler.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

TEST(LossScaler, IsOneAndStaysOneWhenNotUsed) {
  LossScaler s;
  for (int i = 0; i < 5000; ++i) s.update(false);
  EXPECT_EQ(s.scale(), 1);
  EXPECT_FALSE(s.exhausted());
  s.restore(4096, 7);
  EXPECT_EQ(s.scale(), 1);
  s.update(true);
  EXPECT_EQ(s.scale(), 1);
  EXPECT_TRUE(s.exhausted());
}

// TR-16: an overflow at 2^30 leaves 2^29.
TEST(LossScaler, HalvesOnOverflowAndDoublesAfterTheInterval) {
  LossScaler s(1073741824.0, 3);
  s.update(true);
  EXPECT_EQ(s.scale(), 536870912.0);
  s.update(false);
  s.update(false);
  EXPECT_EQ(s.scale(), 536870912.0);
  s.update(false);
  EXPECT_EQ(s.scale(), 1073741824.0);
  EXPECT_EQ(s.good_steps(), 0);
}

TEST(LossScaler, AnOverflowRestartsTheCountOfGoodSteps) {
  LossScaler s(1024, 3);
  s.update(false);
  s.update(false);
  s.update(true);
  s.update(false);
  s.update(false);
  EXPECT_EQ(s.scale(), 512);
  EXPECT_EQ(s.good_steps(), 2);
}

TEST(LossScaler, IsExhaustedOnlyByAnOverflowAtOne) {
  LossScaler s(2, 100);
  s.update(true);
  EXPECT_EQ(s.scale(), 1);
  EXPECT_FALSE(s.exhausted());
  s.update(true);
  EXPECT_TRUE(s.exhausted());
  s.update(false);
  EXPECT_FALSE(s.exhausted());
}

TEST(LossScaler, RestoresWhatWasSaved) {
  LossScaler a(65536, 10);
  for (int i = 0; i < 7; ++i) a.update(false);
  LossScaler b(65536, 10);
  b.restore(a.scale(), a.good_steps());
  for (int i = 0; i < 3; ++i) {
    a.update(false);
    b.update(false);
  }
  EXPECT_EQ(a.scale(), 131072);
  EXPECT_EQ(b.scale(), 131072);
}

}  // namespace
}  // namespace drivetrain

#include "runtime/ledger/step_ledger.h"

#include <gtest/gtest.h>

#include "kernels/error.h"

namespace drivetrain {
namespace {

std::int64_t now_ns = 0;  // the clock of these tests
std::int64_t test_clock() {
  return now_ns;
}
void pass(std::int64_t ns) {
  now_ns += ns;
}
std::int64_t of(const StepRecord& r, Phase p) {
  return r.phase_ns[static_cast<std::size_t>(p)];
}

TEST(StepLedger, ChargesEveryNanosecondToTheInnermostSpan) {
  StepLedger ledger(test_clock);
  pass(5);  // nobody's
  {
    const LedgerSpan backward(&ledger, Phase::kBackward);
    pass(100);
    {
      const LedgerSpan sync(&ledger, Phase::kGradSync);
      pass(30);
    }
    pass(10);
  }
  {
    const LedgerSpan optimizer(&ledger, Phase::kOptimizer);
    pass(7);
  }
  const StepRecord r = ledger.end_step(3, 2048);
  EXPECT_EQ(r.step, 3);
  EXPECT_EQ(r.tokens, 2048);
  EXPECT_EQ(of(r, Phase::kBackward), 110);
  EXPECT_EQ(of(r, Phase::kGradSync), 30);
  EXPECT_EQ(of(r, Phase::kOptimizer), 7);
  EXPECT_EQ(r.wall_ns, 152);
  EXPECT_EQ(r.residual_ns(), 5);
}

TEST(StepLedger, StepsFollowEachOtherWithoutAGap) {
  StepLedger ledger(test_clock);
  pass(10);
  const StepRecord a = ledger.end_step(1, 0);
  pass(20);
  const StepRecord b = ledger.end_step(2, 0);
  EXPECT_EQ(a.begin_ns + a.wall_ns, b.begin_ns);
  EXPECT_EQ(b.wall_ns, 20);
}

TEST(StepLedger, RestartForgetsTheTimeBefore) {
  StepLedger ledger(test_clock);
  pass(1000);
  ledger.restart();
  pass(3);
  EXPECT_EQ(ledger.end_step(1, 0).wall_ns, 3);
}

TEST(StepLedger, RefusesToEndAStepInsideASpan) {
  StepLedger ledger(test_clock);
  const LedgerSpan span(&ledger, Phase::kForward);
  EXPECT_THROW(ledger.end_step(1, 0), Error);
}

TEST(StepLedger, ANullLedgerMeasuresNothing) {
  const LedgerSpan span(nullptr, Phase::kForward);
}

}  // namespace
}  // namespace drivetrain

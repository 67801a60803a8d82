#include "runtime/ledger/step_ledger.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/error.h"
#include "tests/runtime/ledger/fake_clock.h"

namespace drivetrain {
namespace {

using test::fake_clock;
using test::fake_now_ns;
using test::pass;

void run_op(StepLedger& ledger, OpClass c, std::int64_t ns) {
  const std::int64_t begin_ns = fake_now_ns;
  pass(ns);
  ledger.op(c, begin_ns, fake_now_ns, 100, 10);
}

// Blocked for waited + moved; `last` came last. waited < 0: the transport cannot tell.
void run_collective(StepLedger& ledger, CommAxis axis, std::int64_t waited, std::int64_t moved, int last) {
  CollectiveSpan span{.axis = axis, .op = CollectiveOp::kAllReduce, .begin_ns = fake_now_ns, .last_rank = last};
  span.timing.arrival_ns = fake_now_ns;
  if (waited > 0) pass(waited);
  if (waited >= 0) span.timing.last_arrival_ns = fake_now_ns;
  pass(moved);
  span.end_ns = span.timing.end_ns = fake_now_ns;
  span.timing.bytes = 1000;
  ledger.collective(span);
}

TEST(StepLedger, EveryNanosecondOfAComputePhaseIsOpCommunicationOrHostGap) {
  StepLedger ledger(fake_clock);
  {
    const LedgerSpan data(&ledger, Phase::kDataWait);
    pass(11);
  }
  {
    const LedgerSpan forward(&ledger, Phase::kForward);
    {
      const LedgerSpan copy(&ledger, Phase::kCopy);
      pass(4);
    }
    pass(1);
    run_op(ledger, OpClass::kGemm, 100);
    pass(2);
    run_collective(ledger, CommAxis::kTp, 30, 20, 1);
    const LedgerSpan backward(&ledger, Phase::kBackward);
    {
      const LedgerSpan recompute(&ledger, Phase::kRecompute);
      run_op(ledger, OpClass::kNorm, 7);
      pass(1);
    }
    run_op(ledger, OpClass::kGemm, 200);
    run_op(ledger, OpClass::kAttention, 50);
    run_collective(ledger, CommAxis::kDp, -1, 60, -1);
    pass(3);
  }
  {
    const LedgerSpan optimizer(&ledger, Phase::kOptimizer);
    run_collective(ledger, CommAxis::kWorld, 8, 0, 0);
    run_op(ledger, OpClass::kOptimizer, 40);
  }
  pass(5);  // nobody's
  const StepRecord r = ledger.end_step(3, 2048);
  EXPECT_EQ(r.step, 3);
  EXPECT_EQ(r.tokens, 2048);
  const std::array<std::int64_t, kTimeClasses> expected{11, 4, 100, 250, 7, 40, 30, 20, 0, 60, 8, 0, 7, 0, 0, 0};
  for (std::size_t c = 0; c < kTimeClasses; ++c)
    EXPECT_EQ(r.class_ns[c], expected[c]) << name(static_cast<TimeClass>(c));
  EXPECT_EQ(r.wall_ns, 542);
  EXPECT_EQ(r.residual_ns(), 5);

  EXPECT_EQ(r.at(OpClass::kGemm).ns, 300);
  EXPECT_EQ(r.at(OpClass::kGemm).flops, 200);
  EXPECT_EQ(r.at(OpClass::kGemm).bytes, 20);
  EXPECT_EQ(r.at(OpClass::kAttention).ns, 50);
  EXPECT_EQ(r.at(OpClass::kEmbeddingLoss).ns, 0);
  EXPECT_EQ(r.at(CommAxis::kTp).calls, 1);
  EXPECT_EQ(r.at(CommAxis::kTp).bytes, 1000);
  EXPECT_EQ(r.at(CommAxis::kTp).in_flight_ns, 20);
  EXPECT_EQ(r.at(CommAxis::kDp).in_flight_ns, 60);
  EXPECT_EQ(r.at(CommAxis::kTp).culprit, 1);
  EXPECT_EQ(r.at(CommAxis::kTp).culprit_ns, 30);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit, -1);
  EXPECT_EQ(r.at(CommAxis::kWorld).culprit, 0);
}

TEST(StepLedger, CheckpointEvaluationAndDataKeepAllTheirTime) {
  for (const auto& [phase, time_class] : {std::pair{Phase::kDataWait, TimeClass::kDataWait},
                                          {Phase::kCheckpoint, TimeClass::kCheckpoint},
                                          {Phase::kEval, TimeClass::kEval},
                                          {Phase::kCopy, TimeClass::kCopy},
                                          {Phase::kOther, TimeClass::kOther}}) {
    StepLedger ledger(fake_clock);
    {
      const LedgerSpan span(&ledger, phase);
      run_op(ledger, OpClass::kGemm, 100);
      pass(1);
      run_collective(ledger, CommAxis::kDp, 10, 20, 0);
    }
    const StepRecord r = ledger.end_step(1, 0);
    EXPECT_EQ(r.at(time_class), 131) << name(phase);
    EXPECT_EQ(r.residual_ns(), 0);
    EXPECT_EQ(r.at(OpClass::kGemm).flops, 0);
    EXPECT_EQ(r.at(CommAxis::kDp).calls, 0);
  }
}

TEST(StepLedger, WaitingIsCutAtTheBlockedTime) {
  StepLedger ledger(fake_clock);
  const auto blocked = [&](std::int64_t last_arrival_after) {
    const LedgerSpan span(&ledger, Phase::kBackward);
    CollectiveSpan s{.axis = CommAxis::kDp, .begin_ns = fake_now_ns, .last_rank = 1};
    s.timing = {fake_now_ns - 50, fake_now_ns + last_arrival_after, fake_now_ns + 40, 8};
    pass(40);
    s.end_ns = fake_now_ns;
    ledger.collective(s);
  };
  blocked(-10);  // everybody was there before this rank began to wait: a pending work
  blocked(25);
  blocked(90);  // a clock that is ahead
  const StepRecord r = ledger.end_step(1, 0);
  EXPECT_EQ(r.at(TimeClass::kDpWait), 0 + 25 + 40);
  EXPECT_EQ(r.at(TimeClass::kDpTransfer), 40 + 15 + 0);
  EXPECT_EQ(r.residual_ns(), 0);
}

TEST(StepLedger, NamesTheRankThatCostMost) {
  StepLedger ledger(fake_clock);
  {
    const LedgerSpan span(&ledger, Phase::kBackward);
    for (const auto& [rank, ns] : {std::pair{3, 40}, {1, 30}, {2, 20}, {1, 30}, {0, 10}})
      run_collective(ledger, CommAxis::kDp, ns, 1, rank);
  }
  const StepRecord r = ledger.end_step(1, 0);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit, 1);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit_ns, 60);
}

// More culprits than there is memory for: the heavy one is named, and never charged with what others did.
TEST(StepLedger, ManyCulpritsDoNotHideTheWorst) {
  StepLedger ledger(fake_clock);
  {
    const LedgerSpan span(&ledger, Phase::kBackward);
    for (int i = 0; i < 400; ++i) {
      run_collective(ledger, CommAxis::kDp, 1, 1, i % 100);
      if (i % 4 == 0) run_collective(ledger, CommAxis::kDp, 10, 1, 777);
    }
  }
  const StepRecord r = ledger.end_step(1, 0);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit, 777);
  EXPECT_LE(r.at(CommAxis::kDp).culprit_ns, 1000);
  EXPECT_GE(r.at(CommAxis::kDp).culprit_ns, 900);
}

TEST(StepLedger, StepsFollowEachOtherWithoutAGap) {
  StepLedger ledger(fake_clock);
  pass(10);
  const StepRecord a = ledger.end_step(1, 0);
  pass(20);
  const StepRecord b = ledger.end_step(2, 0);
  EXPECT_EQ(a.begin_ns + a.wall_ns, b.begin_ns);
  EXPECT_EQ(b.wall_ns, 20);
}

TEST(StepLedger, KeepsTheEventsOfTheStepThatEnded) {
  StepLedger ledger(fake_clock);
  const std::int64_t begin_ns = fake_now_ns;
  {
    const LedgerSpan span(&ledger, Phase::kForward);
    pass(5);
    CollectiveSpan s{.axis = CommAxis::kTp,
                     .op = CollectiveOp::kAllGather,
                     .begin_ns = fake_now_ns,
                     .last_rank = 1,
                     .sequence = 9};
    s.timing = {fake_now_ns, fake_now_ns + 2, fake_now_ns + 3, 64};
    pass(3);
    s.end_ns = fake_now_ns;
    ledger.collective(s);
  }
  ledger.end_step(7, 0);
  EXPECT_EQ(ledger.calls().phases, 1);
  EXPECT_EQ(ledger.calls().collectives, 1);
  ASSERT_EQ(ledger.events().size(), 2u);
  const LedgerEvent &c = ledger.events()[0], &p = ledger.events()[1];
  EXPECT_EQ(c.kind, LedgerEvent::Kind::kCollective);
  EXPECT_EQ(c.step, 7);
  EXPECT_EQ(c.begin_ns, begin_ns + 5);
  EXPECT_EQ(c.last_arrival_ns, begin_ns + 7);
  EXPECT_EQ(c.end_ns, begin_ns + 8);
  EXPECT_EQ(c.bytes, 64);
  EXPECT_EQ(c.what, static_cast<std::uint8_t>(CollectiveOp::kAllGather));
  EXPECT_EQ(c.axis, static_cast<std::uint8_t>(CommAxis::kTp));
  EXPECT_EQ(c.last_rank, 1);
  EXPECT_EQ(c.sequence, 9u);
  EXPECT_EQ(p.kind, LedgerEvent::Kind::kPhase);
  EXPECT_EQ(p.what, static_cast<std::uint8_t>(Phase::kForward));
  EXPECT_EQ(p.begin_ns, begin_ns);
  EXPECT_EQ(p.end_ns, begin_ns + 8);
  ledger.end_step(8, 0);
  EXPECT_TRUE(ledger.events().empty());
}

TEST(StepLedger, CountsTheEventsThatDoNotFit) {
  StepLedger ledger(fake_clock);
  for (std::size_t i = 0; i < StepLedger::kEvents + 3; ++i) const LedgerSpan span(&ledger, Phase::kOther);
  ledger.end_step(1, 0);
  EXPECT_EQ(ledger.events().size(), StepLedger::kEvents);
  EXPECT_EQ(ledger.events_dropped(), 3);
}

TEST(StepLedger, RestartForgetsTheTimeBefore) {
  StepLedger ledger(fake_clock);
  pass(1000);
  ledger.restart();
  pass(3);
  EXPECT_EQ(ledger.end_step(1, 0).wall_ns, 3);
}

TEST(StepLedger, RefusesToEndAStepInsideAPhase) {
  StepLedger ledger(fake_clock);
  const LedgerSpan span(&ledger, Phase::kForward);
  EXPECT_THROW(ledger.end_step(1, 0), Error);
}

TEST(StepLedger, ANullLedgerMeasuresNothing) {
  const LedgerSpan span(nullptr, Phase::kForward);
}

TEST(StepRecord, EveryClassHasItsName) {
  EXPECT_STREQ(name(TimeClass::kDataWait), "data_wait");
  EXPECT_STREQ(name(TimeClass::kWorldTransfer), "world_transfer");
  EXPECT_STREQ(name(TimeClass::kHostGap), "host_gap");
  EXPECT_STREQ(name(TimeClass::kOther), "other");
  EXPECT_STREQ(name(OpClass::kOptimizer), "optimizer");
  EXPECT_STREQ(name(CommAxis::kWorld), "world");
  EXPECT_STREQ(name(Phase::kOther), "other");
}

}  // namespace
}  // namespace drivetrain

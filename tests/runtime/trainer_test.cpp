// The identities that the step loop promises: layout, accumulation, sharding, bucket size and repetition do not change
// what is learned.
#include "runtime/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tests/runtime/training_job.h"

namespace drivetrain {
namespace {

using test::fresh_folder;
using test::train;
using test::TrainingJob;
using test::TrainingOutcome;
using Shard = StoreOptions::Shard;

TrainingJob job(const std::string& name) {
  TrainingJob j;
  j.folder = fresh_folder(testing::UnitTest::GetInstance()->current_test_info()->name() + ("-" + name));
  return j;
}

void expect_equal_curves(const TrainingOutcome& a, const TrainingOutcome& b, double relative) {
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (const char* key : {"loss", "grad_norm"}) {
    const auto x = a.column(key), y = b.column(key);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x[i], y[i], relative * std::abs(x[i])) << key << " of step " << i + 1;
  }
  EXPECT_EQ(a.column("lr"), b.column("lr"));
  EXPECT_EQ(a.column("tokens"), b.column("tokens"));
}

// Uneven target counts, so that a mean of means would show (TR-01).
std::int64_t uneven(std::int64_t sample) {
  return 1 + sample * 5 % 8;
}

TEST(Trainer, Learns) {
  const auto out = train(job("a"));
  const auto loss = out.column("loss");
  EXPECT_NEAR(loss.front(), std::log(16.0), 0.1);
  EXPECT_LT(loss.back(), 0.9 * loss.front());
}

// TR-01, TR-03, TR-07: micro-batches and data ranks cut the same window differently. Tensor ranks hold replicas here.
TEST(Trainer, AccumulationAndDataRanksDoNotChangeTheCurve) {
  TrainingJob whole = job("whole");
  whole.micro = 4;
  whole.targets = uneven;
  const auto reference = train(whole);
  EXPECT_EQ(reference.rows.size(), 10u);
  for (const auto& [dp, tp, micro] :
       {std::tuple{1, 1, 1}, {1, 1, 2}, {2, 1, 1}, {2, 1, 2}, {4, 1, 1}, {1, 2, 4}, {2, 2, 1}}) {
    TrainingJob cut = job("dp" + std::to_string(dp) + "tp" + std::to_string(tp) + "micro" + std::to_string(micro));
    cut.shape = {dp, tp};
    cut.micro = micro;
    cut.targets = uneven;
    expect_equal_curves(reference, train(cut), 1e-5);
  }
}

TEST(Trainer, ShardingBucketsAndWireDoNotChangeTheCurve) {
  TrainingJob base = job("base");
  base.shape.dp = 2;
  const auto reference = train(base);
  for (const Shard shard : {Shard::kOff, Shard::kOptimizer})
    for (const std::size_t bucket_bytes : {std::size_t{4}, std::size_t{1} << 20}) {
      TrainingJob other = job("shard" + std::to_string(static_cast<int>(shard)) + std::to_string(bucket_bytes));
      other.shape.dp = 2;
      other.store.shard = shard;
      other.store.bucket_bytes = bucket_bytes;
      const auto out = train(other);
      expect_equal_curves(reference, out, 1e-14);  // the norm adds in another order
      EXPECT_EQ(out.weights, reference.weights);
    }
  TrainingJob wire = job("wire");
  wire.shape.dp = 2;
  wire.wire = DType::kBF16;
  expect_equal_curves(reference, train(wire), 2e-2);
}

TEST(Trainer, DropoutDoesNotDependOnTheLayout) {
  TrainingJob one = job("one"), two = job("two"), none = job("none");
  one.dropout = two.dropout = 0.25;
  two.shape.dp = 2;
  const auto a = train(one);
  expect_equal_curves(a, train(two), 1e-5);
  EXPECT_NE(a.column("loss"), train(none).column("loss"));
}

// TR-31
TEST(Trainer, TheSameCommandTwiceGivesTheSameBits) {
  const auto run = [](const std::string& name, std::uint64_t seed) {
    TrainingJob j = job(name);
    j.shape.dp = 2;
    j.seed = seed;
    const auto out = train(j);
    std::vector<std::string> text;
    for (const auto& row : out.rows) text.push_back(row.at("loss").dump() + row.at("grad_norm").dump());
    return text;
  };
  const auto first = run("a", 7);
  EXPECT_EQ(first, run("b", 7));
  EXPECT_NE(first, run("c", 8));
}

// TR-05: six samples in windows of four; the second window of an epoch is exactly two samples.
TEST(Trainer, AShortWindowIsAWindowOfItsOwnSize) {
  for (const int dp : {1, 2}) {
    TrainingJob j = job("dp" + std::to_string(dp));
    j.samples = 6;
    j.steps = 4;
    j.shape.dp = dp;
    j.targets = uneven;
    const auto out = train(j);
    EXPECT_EQ(out.column("samples"), (std::vector<double>{4, 2, 4, 2}));
    EXPECT_EQ(out.column("tokens"), (std::vector<double>{32, 48, 80, 96}));
    const auto targets = out.column("targets");
    double all = 0;
    for (std::int64_t i = 0; i < 6; ++i) all += static_cast<double>(uneven(i));
    EXPECT_EQ(targets[0] + targets[1], all);
    EXPECT_EQ(targets[2] + targets[3], all);
  }
}

// TR-08
TEST(Trainer, SevenSamplesOnTwoAndFourRanksFinish) {
  for (const int dp : {1, 2, 4}) {
    TrainingJob j = job("dp" + std::to_string(dp));
    j.samples = 7;
    j.shape.dp = dp;
    j.steps = 4;
    const auto out = train(j);
    EXPECT_EQ(out.column("samples"), (std::vector<double>{4, 3, 4, 3}));
  }
}

// MF-12: micro 2, sequences of 8, two micro-batches, two ranks: 64 tokens per update.
TEST(Trainer, TokensPerSecondTimesStepTimeAreTheTokensOfTheUpdate) {
  TrainingJob j = job("a");
  j.shape.dp = 2;
  j.micro = 2;
  j.global = 8;
  j.steps = 5;
  const auto out = train(j);
  for (const auto& row : out.rows) {
    EXPECT_NEAR(row.at("tokens_per_s").get<double>() * row.at("step_ms").get<double>() * 1e-3, 64, 1e-9);
    EXPECT_NEAR(row.at("mfu").get<double>(), 1e8 * row.at("tokens_per_s").get<double>() / 2e12, 1e-12);
  }
  EXPECT_EQ(out.state.tokens, 5 * 64);
}

// TR-16 in the loop: the overflow of the first steps shows in scale and learning rate, then training recovers.
TEST(Trainer, Fp16OverflowSkipsOnAllRanksAndKeepsTheSchedule) {
  TrainingJob j = job("a");
  j.shape.dp = 2;
  j.store.compute = DType::kF16;
  j.loss_scale = 1073741824.0;
  j.global = 2;
  j.samples = 2;
  j.steps = 40;
  j.schedule.total = 40;
  j.targets = [](std::int64_t sample) { return sample == 0 ? 0 : 8; };  // one rank's sample has no loss
  const auto out = train(j);
  const auto skipped = out.column("skipped"), lr = out.column("lr"), scale = out.column("loss_scale");
  const auto n = static_cast<std::size_t>(std::accumulate(skipped.begin(), skipped.end(), 0.0));
  ASSERT_GT(n, 0u);
  ASSERT_LT(n, 30u);
  EXPECT_EQ(out.rows[0].at("skipped_reason"), "gradient not finite");
  EXPECT_EQ(scale[0], 1073741824.0);
  EXPECT_EQ(scale[1], 536870912.0);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(skipped[i], 1) << i;
    EXPECT_EQ(lr[i], lr[0]) << i;
  }
  EXPECT_EQ(lr[n], lr[0]);
  EXPECT_GT(lr[n + 1], lr[n]);
  EXPECT_LT(out.column("loss").back(), out.column("loss").front());
  EXPECT_EQ(out.state.step, 40);
}

TEST(Trainer, AWindowWithoutTargetsChangesNothing) {
  for (const int dp : {1, 2}) {
    TrainingJob j = job("dp" + std::to_string(dp));
    j.shape.dp = dp;
    j.samples = 4;
    j.steps = 3;
    j.targets = [](std::int64_t) { return 0; };
    const auto out = train(j);
    for (const auto& row : out.rows) {
      EXPECT_EQ(row.at("skipped"), 1);
      EXPECT_EQ(row.at("skipped_reason"), "no targets");
      EXPECT_TRUE(row.at("loss").is_null());
    }
    EXPECT_EQ(out.state.adam_step, 0);
    TrainingJob untouched = job("untouched");
    untouched.steps = 0;
    EXPECT_EQ(out.weights, train(untouched).weights);
  }
}

// Some micro-batches and ranks without targets are ordinary.
TEST(Trainer, RanksWithoutTargetsTakePart) {
  const auto sparse = [](std::int64_t sample) { return sample % 4 == 0 ? 8 : 0; };
  TrainingJob one = job("one"), four = job("four");
  one.targets = four.targets = sparse;
  one.micro = 4;
  four.shape.dp = 4;
  expect_equal_curves(train(one), train(four), 1e-5);
}

TEST(Trainer, TheLedgerAccountsForTheWholeStep) {
  TrainingJob j = job("a");
  j.shape.dp = 2;
  j.eval_every = 5;
  j.eval_samples = 3;
  train(j);
  const auto ranks = read_run_ledger(j.folder);
  ASSERT_EQ(ranks.size(), 2u);
  for (const RankLedger& ledger : ranks) {
    ASSERT_EQ(ledger.records.size(), 10u);
    std::int64_t wall = 0, residual = 0;
    for (const StepRecord& r : ledger.records) {
      wall += r.wall_ns;
      residual += r.residual_ns();
      EXPECT_GE(r.residual_ns(), 0);
      EXPECT_EQ(r.tokens, 32);
      EXPECT_EQ(r.own_tokens, 16);
      EXPECT_EQ(r.own_length_squares, 2 * 64);
      for (const TimeClass c :
           {TimeClass::kDataWait, TimeClass::kCopy, TimeClass::kForward, TimeClass::kBackward, TimeClass::kDpTransfer,
            TimeClass::kOptimizer, TimeClass::kWorldTransfer, TimeClass::kHostGap, TimeClass::kOther})
        EXPECT_GT(r.at(c), 0) << name(c);
      EXPECT_EQ(r.at(TimeClass::kEval) > 0, r.step % 5 == 0);
      EXPECT_EQ(r.at(TimeClass::kCheckpoint) > 0, r.step == 10);
      EXPECT_GT(r.at(OpClass::kGemm).flops, 0);
      EXPECT_GT(r.at(CommAxis::kDp).bytes, 0);
      EXPECT_EQ(r.at(CommAxis::kWorld).calls, 1);
      EXPECT_GT(r.ledger_ns, 0);
    }
    EXPECT_LT(static_cast<double>(residual), 0.01 * static_cast<double>(wall));
    const RankEvents events = read_events(events_path(j.folder / "ledger", ledger.info.world_rank));
    ASSERT_EQ(events.steps.size(), 10u);
    EXPECT_EQ(events.steps[9].begin_ns, ledger.records[9].begin_ns);
  }
}

// The late rank waits for its data; the other one waits for the late rank, and says for whom.
TEST(Trainer, ALateLoaderIsDataWaitThereAndWaitingElsewhere) {
  TrainingJob j = job("a");
  j.shape.dp = 2;
  j.data_delay = [](int world_rank) { return std::chrono::milliseconds(world_rank == 1 ? 20 : 0); };
  train(j);
  const auto ranks = read_run_ledger(j.folder);
  ASSERT_EQ(ranks.size(), 2u);
  // Step by step, and most of them: on a busy machine either rank may lose its core for longer than the delay.
  int late_for_data = 0, early_waits = 0, late_waits_less = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const StepRecord &early = ranks[0].records[i], &late = ranks[1].records[i];
    const std::int64_t wait = early.at(TimeClass::kDpWait);
    EXPECT_GE(late.at(TimeClass::kDataWait), 20'000'000);
    if (early.at(TimeClass::kDataWait) < late.at(TimeClass::kDataWait) / 4) ++late_for_data;
    if (wait > 10'000'000 && early.at(CommAxis::kDp).culprit == 1 &&
        early.at(CommAxis::kDp).culprit_ns > wait * 9 / 10)
      ++early_waits;
    if (late.at(TimeClass::kDpWait) < wait / 4) ++late_waits_less;
  }
  EXPECT_GE(late_for_data, 6);
  EXPECT_GE(early_waits, 6);
  EXPECT_GE(late_waits_less, 6);
}

}  // namespace
}  // namespace drivetrain

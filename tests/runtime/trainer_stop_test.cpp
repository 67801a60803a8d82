// How the step loop ends and goes on: stop requests, bad numbers, checkpoints, evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "tests/runtime/training_job.h"

namespace drivetrain {
namespace {

using test::fresh_folder;
using test::read_rows;
using test::train;
using test::TrainingJob;
using test::TrainingOutcome;

TrainingJob job(const std::string& name) {
  TrainingJob j;
  j.folder = fresh_folder(testing::UnitTest::GetInstance()->current_test_info()->name() + ("-" + name));
  return j;
}

Error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::kUsage, "nothing thrown");
}

// Everything but wall-clock times.
std::vector<std::string> results(const TrainingOutcome& out) {
  std::vector<std::string> text;
  for (auto row : out.rows) {
    for (const char* timing : {"tokens_per_s", "mfu", "step_ms", "data_wait_ms"}) row.erase(timing);
    text.push_back(row.dump());
  }
  return text;
}

// One rank is signalled; both stop after the same step with a checkpoint; the resumed run equals the unbroken one.
TEST(TrainerStop, AStoppedAndResumedRunEqualsTheUnbrokenOneBitForBit) {
  for (const int dp : {1, 2}) {
    const auto configure = [dp](TrainingJob j) {
      j.shape.dp = dp;
      j.store.compute = DType::kBF16;
      j.dropout = 0.1f;
      j.samples = 10;  // three epochs (RS-04)
      j.eval_every = 2;
      j.eval_samples = 5;
      return j;
    };
    const auto unbroken = train(configure(job("unbroken" + std::to_string(dp))));

    TrainingJob j = configure(job("broken" + std::to_string(dp)));
    j.stop = [dp](int world_rank, std::int64_t asked) { return world_rank == dp - 1 && asked == 5; };
    const Error stopped = error_of([&] { train(j); });
    EXPECT_EQ(stopped.kind(), ErrorKind::kStopped) << stopped.what();
    EXPECT_EQ(stopped.exit_code(), 75);
    EXPECT_NE(std::string(stopped.what()).find("after step 6 of 10"), std::string::npos) << stopped.what();
    EXPECT_EQ(read_rows(j.folder).size(), 6u);
    EXPECT_FALSE(read_rows(j.folder).back().contains("eval_loss"));  // saving came first
    EXPECT_TRUE(std::filesystem::exists(j.folder / "checkpoints" / "step-000006" / "DONE"));

    j.stop = nullptr;
    j.resume = true;
    const auto resumed = train(j);
    EXPECT_EQ(results(resumed), results(unbroken));
    EXPECT_EQ(resumed.weights, unbroken.weights);
  }
}

// RS-09, RS-16: rates and token counts go on; what was evaluated is not evaluated again; later rows are dropped.
TEST(TrainerStop, ARunContinuesFromAnEarlierCheckpoint) {
  TrainingJob j = job("a");
  j.eval_every = 5;
  j.eval_samples = 4;
  j.checkpoint_every = 5;
  const auto unbroken = train(j);
  std::filesystem::remove_all(j.folder / "checkpoints" / "step-000010");
  j.resume = true;
  const auto again = train(j);
  EXPECT_EQ(results(again), results(unbroken));
  EXPECT_EQ(again.column("tokens").back(), 320);
  EXPECT_TRUE(again.rows[9].contains("eval_loss"));
  EXPECT_FALSE(again.rows[8].contains("eval_loss"));

  // Finished: nothing is trained, evaluated or saved again.
  const auto finished = train(j);
  EXPECT_EQ(results(finished), results(unbroken));
  EXPECT_EQ(finished.weights, unbroken.weights);
}

// RS-07: another number of data ranks, the same global batch.
TEST(TrainerStop, ResumesOnAnotherNumberOfDataRanks) {
  TrainingJob whole = job("whole");
  whole.shape.dp = 4;
  const auto unbroken = train(whole);
  for (const int dp : {1, 2}) {
    TrainingJob j = job("from4to" + std::to_string(dp));
    j.shape.dp = 4;
    j.stop = [](int, std::int64_t asked) { return asked == 4; };
    EXPECT_EQ(error_of([&] { train(j); }).kind(), ErrorKind::kStopped);
    j.stop = nullptr;
    j.resume = true;
    j.shape.dp = dp;
    const auto resumed = train(j);
    const auto a = unbroken.column("loss"), b = resumed.column("loss");
    ASSERT_EQ(b.size(), 10u);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * a[i]) << i;
  }
}

TEST(TrainerStop, AStopAtTheLastStepIsAnOrdinaryEnd) {
  TrainingJob j = job("a");
  j.eval_samples = 1;
  j.stop = [](int, std::int64_t asked) { return asked == 9; };
  const auto out = train(j);
  EXPECT_EQ(out.rows.size(), 10u);
  EXPECT_TRUE(out.rows.back().contains("eval_loss"));
}

TEST(TrainerStop, ALossThatIsNotFiniteNamesStepRankAndMicroBatch) {
  TrainingJob j = job("a");
  j.shape.dp = 2;
  j.checkpoint_every = 2;
  // Rank 1, step 4 (two micro-batches per step and rank), its second micro-batch.
  j.poison = [](int world_rank, std::int64_t micro) { return world_rank == 1 && micro == 7; };
  const Error e = error_of([&] { train(j); });
  EXPECT_EQ(e.kind(), ErrorKind::kNumeric) << e.what();
  EXPECT_NE(std::string(e.what()).find("step 4 is not finite, first on rank 1 in micro-batch 2 of 2"),
            std::string::npos)
      << e.what();
  EXPECT_EQ(read_rows(j.folder).size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(j.folder / "checkpoints" / "step-000002" / "DONE"));
  EXPECT_FALSE(std::filesystem::exists(j.folder / "checkpoints" / "step-000004"));
}

TEST(TrainerStop, EvaluationDoesNotDependOnTheLayout) {
  std::vector<double> losses;
  for (const auto& [dp, tp, micro] : {std::tuple{1, 1, 1}, {1, 1, 4}, {2, 1, 1}, {2, 1, 2}, {4, 1, 1}, {2, 2, 1}}) {
    TrainingJob j = job("dp" + std::to_string(dp) + "tp" + std::to_string(tp) + "micro" + std::to_string(micro));
    j.shape = {dp, tp};
    j.micro = micro;
    j.steps = 1;
    j.eval_samples = 7;  // does not divide
    const auto out = train(j);
    losses.push_back(out.rows[0].at("eval_loss").get<double>());
    EXPECT_NEAR(out.rows[0].at("eval_perplexity").get<double>(), std::exp(losses.back()), 1e-9);
    EXPECT_NEAR(losses.back(), losses.front(), 1e-5 * losses.front());
    EXPECT_EQ(out.column("tokens").back(), 32);  // evaluation is not training
  }
}

}  // namespace
}  // namespace drivetrain

#include "launcher/bench/bench_report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "kernels/cpu/cpu_device.h"
#include "kernels/error.h"
#include "launcher/bench/bench_json.h"
#include "launcher/bench/bench_options.h"
#include "launcher/bench/bench_text.h"
#include "launcher/bench/vary_report.h"
#include "tests/runtime/memory_dataset.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kMs = 1000000;

StepRecord row_of(std::int64_t step, std::int64_t forward_ms, std::int64_t waits_ms) {
  StepRecord row;
  row.step = step;
  row.tokens = 1000;
  row.class_ns[static_cast<std::size_t>(TimeClass::kForward)] = forward_ms * kMs;
  row.class_ns[static_cast<std::size_t>(TimeClass::kDpWait)] = waits_ms * kMs;
  row.class_ns[static_cast<std::size_t>(TimeClass::kOptimizer)] = 10 * kMs;
  row.wall_ns = (forward_ms + waits_ms + 10) * kMs;
  row.ops[static_cast<std::size_t>(OpClass::kGemm)] = {forward_ms * kMs, 4e9, 1e8};
  row.own_tokens = 500;
  return row;
}

// Two ranks; rank 1 computes `late_ms` longer in every step and rank 0 waits for it.
StepBench made_up(std::int64_t late_ms, double peak_flops) {
  StepBench bench;
  bench.config = "made-up.yaml";
  bench.model = "llama, made up";
  bench.data = "synthetic";
  bench.transport = "shm";
  bench.warmup = 1;
  bench.shape = {.layers = 12,
                 .dim = 768,
                 .heads = 12,
                 .kv_heads = 12,
                 .head_dim = 64,
                 .ffn = 3072,
                 .vocab = 50257,
                 .tied = true,
                 .position_rows = 1024,
                 .parameters = 124439808,
                 .seq = 1024};
  bench.facts = {.data_workers = 1, .zero = 1, .compute = "fp32", .reduce = "fp32"};
  bench.peak_source = "measured";
  bench.copy_bytes_per_s = 1e10;
  for (int r = 0; r < 2; ++r) {
    RankLedger ledger;
    ledger.info = {.world_rank = r,
                   .world_size = 2,
                   .dp = 2,
                   .tp = 1,
                   .peak_flops = peak_flops,
                   .compute = "bf16",
                   .host = "h" + std::to_string(r),
                   .device = "a device"};
    for (std::int64_t s = 0; s < 20; ++s)
      ledger.records.push_back(r == 0 ? row_of(s, 90 + s % 3, late_ms) : row_of(s, 90 + s % 3 + late_ms, 0));
    bench.ledgers.push_back(ledger);
  }
  return bench;
}

TEST(StepBenchReport, WaterfallSumsAndMeetsTheMfu) {
  for (const FlopsConvention convention : {FlopsConvention::kCausal, FlopsConvention::kPalm}) {
    StepBench bench = made_up(20, 10e12);
    bench.convention = convention;
    const StepBenchReport report = report_of(bench);
    std::int64_t us = report.waterfall.ideal_us, points = report.waterfall.achieved_milli_points;
    for (const WaterfallRow& row : report.waterfall.rows) {
      us += row.us;
      points += row.milli_points;
    }
    EXPECT_EQ(us, report.waterfall.step_us);
    EXPECT_EQ(points, 100000);
    ASSERT_TRUE(report.chosen.mfu);
    EXPECT_NEAR(*report.chosen.mfu * 1e5, static_cast<double>(report.waterfall.achieved_milli_points), 1);
    EXPECT_DOUBLE_EQ(*report.peak_flops, 20e12);
    EXPECT_NEAR(report.tokens_per_s.mean, 1000 / (report.step_ms.mean * 1e-3), 1e-6);
  }
}

TEST(StepBenchReport, ConventionsStandInTheRatiosOfTheirFlops) {
  const StepBench bench = made_up(0, 10e12);
  const StepBenchReport report = report_of(bench);
  ASSERT_EQ(report.conventions.size(), flops_conventions().size());
  for (const auto& row : report.conventions)
    EXPECT_NEAR(*row.mfu / *report.causal.mfu,
                flops_per_token(bench.shape, row.convention) / flops_per_token(bench.shape, FlopsConvention::kCausal),
                1e-12);
  EXPECT_DOUBLE_EQ(*report.hardware.mfu, *report.causal.mfu);
  StepBench recomputing = bench;
  recomputing.recompute = Recompute::kFull;
  EXPECT_GT(*report_of(recomputing).hardware.mfu, *report.causal.mfu);
}

TEST(StepBenchReport, UnknownPeakMeansNoMfu) {
  StepBench bench = made_up(0, 10e12);
  bench.ledgers[1].info.peak_flops = 0;
  bench.peak_source = "unknown device Frobnicator";
  const StepBenchReport report = report_of(bench);
  EXPECT_FALSE(report.peak_flops || report.chosen.mfu || report.full.mfu);
  const std::string text = bench_text(bench, report);
  EXPECT_NE(text.find("unknown device Frobnicator"), std::string::npos);
  EXPECT_NE(text.find("--peak-tflops"), std::string::npos);
  EXPECT_TRUE(bench_json(bench, report)["mfu"].is_null());
}

TEST(StepBenchReport, SaysWhenTheProductsBeatThePeak) {
  const StepBench low = made_up(0, 1e9), fair = made_up(0, 10e12);
  EXPECT_NE(bench_text(low, report_of(low)).find("too low"), std::string::npos);
  EXPECT_EQ(bench_text(fair, report_of(fair)).find("too low"), std::string::npos);
}

TEST(StepBenchReport, NamesTheRankThatHoldsUpAndShowsRanksOnlyThen) {
  const StepBench late = made_up(30, 10e12);
  const StepBenchReport report = report_of(late);
  EXPECT_TRUE(report.ranks_differ);
  ASSERT_FALSE(report.diagnosis.verdicts.empty());
  EXPECT_EQ(report.diagnosis.verdicts[0].rank, 1);
  EXPECT_NE(bench_text(late, report).find("own work ms"), std::string::npos);
  EXPECT_NE(bench_text(late, report).find("straggler rank 1 "), std::string::npos);
  const StepBench even = made_up(0, 10e12);
  const std::string text = bench_text(even, report_of(even));
  EXPECT_EQ(text.find("own work ms"), std::string::npos);
  EXPECT_NE(text.find("straggler none"), std::string::npos);
}

TEST(StepBenchReport, FitsInHundredColumns) {
  StepBench bench = made_up(30, 10e12);
  bench.config = std::string(150, 'c');
  bench.ledgers[0].info.host = std::string(60, 'h');
  bench.feed_windows = 3;
  std::istringstream text(bench_text(bench, report_of(bench)));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(StepBenchReport, JsonHasTheFiguresOfTheText) {
  const StepBench bench = made_up(30, 10e12);
  const StepBenchReport report = report_of(bench);
  const auto json = bench_json(bench, report);
  EXPECT_EQ(json["schema"], kBenchSchema);
  EXPECT_DOUBLE_EQ(json["mfu"], *report.chosen.mfu);
  EXPECT_DOUBLE_EQ(json["mfu_by_convention"]["drivetrain"], *report.causal.mfu);
  EXPECT_DOUBLE_EQ(json["tokens_per_s"]["median"], report.tokens_per_s.median);
  EXPECT_EQ(json["waterfall"]["losses"].size(), report.waterfall.rows.size());
  EXPECT_EQ(json["verdicts"][0]["rank"], 1);
  EXPECT_TRUE(json["feed"].is_null());
}

// Every sample takes a while to come, as from a slow disk.
class SlowDataset final : public Dataset {
 public:
  explicit SlowDataset(std::chrono::milliseconds each) : each_(each) {}
  std::int64_t size() const override { return inner_.size(); }
  std::int64_t seq_len() const override { return inner_.seq_len(); }
  std::int64_t tokens() const override { return inner_.tokens(); }
  std::int64_t target_count(std::int64_t index) const override { return inner_.target_count(index); }
  std::string report() const override { return "slow"; }
  void read(std::int64_t index, Sample out) const override {
    std::this_thread::sleep_for(each_);
    inner_.read(index, out);
  }

 private:
  test::MemoryDataset inner_{64, 8, 16};
  std::chrono::milliseconds each_;
};

TEST(Feed, IsAsFastAsItsSource) {
  const auto device = make_cpu_device(1);
  const LoaderOptions options{
      .global = 2, .micro = 2, .dp = 1, .dp_rank = 0, .seed = 1, .shuffle = true, .workers = 1};
  const FeedShape shape{.micro = 2, .seq = 8, .warmup = 3, .steps = 5, .least_s = 0.05};
  const auto slow = make_loader(std::make_shared<SlowDataset>(std::chrono::milliseconds(10)), options);
  const double slow_rate = measure_feed(*slow, *device, shape);
  EXPECT_LT(slow_rate, 1 / 0.020);  // two samples a window
  const auto quick = make_loader(std::make_shared<SlowDataset>(std::chrono::milliseconds(0)), options);
  EXPECT_GT(measure_feed(*quick, *device, shape), slow_rate);
}

TEST(Feed, SaysWhetherTheDataSideIsTheLimit) {
  EXPECT_EQ((FeedVerdict{1000, 995}).limit(), FeedVerdict::Limit::kData);
  EXPECT_EQ((FeedVerdict{1500, 1000}).limit(), FeedVerdict::Limit::kNear);
  EXPECT_EQ((FeedVerdict{90000, 1000}).limit(), FeedVerdict::Limit::kCompute);
  EXPECT_NE((FeedVerdict{1000, 995}).sentence().find("is the limit"), std::string::npos);
  EXPECT_NE((FeedVerdict{90000, 1000}).sentence().find("not the limit"), std::string::npos);
}

TEST(VaryRounds, RunBackwardsEverySecondTimeAndLeaveFailuresOut) {
  std::vector<Setting> settings(3);
  settings[1].change = ConfigOverride{"a", "1"};
  settings[2].change = ConfigOverride{"b", "2"};
  std::string order;
  measure_rounds(settings, 2, [&](const Setting& s, int) {
    order += s.change ? s.change->key : "-";
    return s.change && s.change->key == "b" ? Measured{std::nullopt, "too large"}
                                            : Measured{Setting::Figures{100, 1, std::nullopt}, ""};
  });
  EXPECT_EQ(order, "-aba-");
  EXPECT_EQ(settings[2].fault, "too large");
  const auto compared = compare_settings(settings);
  EXPECT_FALSE(compared[0]);
  ASSERT_TRUE(compared[1]);
  EXPECT_EQ(compared[1]->verdict, Comparison::Verdict::kEqual);
  EXPECT_FALSE(compared[2]);
  const std::string text = vary_text(settings, 2);
  EXPECT_NE(text.find("does not run: too large"), std::string::npos);
  EXPECT_NE(text.find("equal"), std::string::npos);
  EXPECT_EQ(vary_json(settings)[2]["fault"], "too large");
  EXPECT_THROW(measure_rounds(settings, 1, [](const Setting&, int) { return Measured{std::nullopt, "no"}; }), Error);
}

}  // namespace
}  // namespace drivetrain

#include "launcher/bench/bench_options.h"

#include <gtest/gtest.h>

#include "kernels/error.h"
#include "launcher/bench/vary.h"
#include "launcher/device_peak.h"

namespace drivetrain {
namespace {

std::string refusal_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

StepBenchOptions parsed(std::vector<std::string> words) {
  OptionList options = step_bench_options();
  add_config_options(options);
  words.insert(words.begin(), "a.yaml");
  const auto values = parse_options(words, {"bench CONFIG", "", ""}, options, {"config"});
  return parse_step_bench(*values);
}

TEST(StepBenchOptions, HaveDefaultsAndTakeWords) {
  const StepBenchOptions plain = parsed({});
  EXPECT_EQ(plain.warmup, 3);
  EXPECT_EQ(plain.steps, 20);
  EXPECT_EQ(plain.convention, FlopsConvention::kCausal);
  EXPECT_FALSE(plain.real_data || plain.feed || plain.peak_tflops);
  const StepBenchOptions told = parsed({"--steps", "7", "--warmup", "0", "--mfu-convention", "megatron2024",
                                        "--peak-tflops", "0.5", "--no-compute", "--vary", "batch.micro=2,4"});
  EXPECT_EQ(told.steps, 7);
  EXPECT_EQ(told.warmup, 0);
  EXPECT_EQ(told.convention, FlopsConvention::kMegatron2024);
  EXPECT_DOUBLE_EQ(*told.peak_tflops, 0.5);
  EXPECT_TRUE(told.feed);
  EXPECT_EQ(told.vary.size(), 2u);
}

TEST(StepBenchOptions, RefuseWithTheWayOut) {
  const auto refused = [](std::vector<std::string> words) { return refusal_of([&] { parsed(words); }); };
  EXPECT_NE(refused({"--steps", "2"}).find("--steps 2: wants 3 to"), std::string::npos);
  EXPECT_NE(refused({"--warmup", "-1"}).find("--warmup -1"), std::string::npos);
  EXPECT_NE(refused({"--peak-tflops", "0"}).find("above 0"), std::string::npos);
  EXPECT_NE(refused({"--rounds", "1"}).find("wants 2 to"), std::string::npos);
  EXPECT_NE(refused({"--out", "x", "--vary", "batch.micro=2"}).find("give one of them"), std::string::npos);
  const std::string convention = refused({"--mfu-convention", "palmm"});
  for (const char* known :
       {"drivetrain", "palm", "megatron", "megatron2024", "nanogpt", "llmc", "torchtitan", "foundry", "hf"})
    EXPECT_NE(convention.find(known), std::string::npos) << known;
}

TEST(Vary, SplitsAtCommasOutsideOfBracketsAndQuotes) {
  const auto changes = parse_vary(
      {"batch.micro=2,4", "model.override={layers: 2, dim: 64},{layers: 3}", "optimizer.betas=[0.9, 0.95]"}, false);
  ASSERT_EQ(changes.size(), 5u);
  EXPECT_EQ(changes[1].key, "batch.micro");
  EXPECT_EQ(changes[1].value, "4");
  EXPECT_EQ(changes[2].value, "{layers: 2, dim: 64}");
  EXPECT_EQ(changes[3].value, "{layers: 3}");
  EXPECT_EQ(changes[4].value, "[0.9, 0.95]");
  EXPECT_EQ(parse_vary({"data.train='a,b',c"}, true).size(), 2u);
}

TEST(Vary, RefusesWhatItCannotMeasure) {
  const auto refused = [](const std::string& word, bool real = false) {
    return refusal_of([&] { parse_vary({word}, real); });
  };
  EXPECT_NE(refused("batch.mikro=2").find("did you mean 'batch.micro'?"), std::string::npos);
  EXPECT_NE(refused("micro=2").find("did you mean 'batch.micro'?"), std::string::npos);
  EXPECT_NE(refused("batch.micro").find("wants KEY=VALUE"), std::string::npos);
  EXPECT_NE(refused("batch.micro=2,,3").find("empty value"), std::string::npos);
  EXPECT_NE(refused("batch.micro=2,2").find("twice"), std::string::npos);
  EXPECT_NE(refused("steps=5").find("bench sets steps itself"), std::string::npos);
  EXPECT_NE(refused("checkpoint.every=5").find("bench sets"), std::string::npos);
  EXPECT_NE(refused("data.packing=off").find("add --real-data"), std::string::npos);
  EXPECT_EQ(refused("data.packing=off", true), "");
  EXPECT_EQ(refused("data.workers=0"), "");
}

TEST(DevicePeak, ComesFromTheTableOnlyWhereItHasTheType) {
  const Peak h100 = table_peak("NVIDIA H100 80GB HBM3", DType::kBF16);
  EXPECT_DOUBLE_EQ(h100.flops.value_or(0), 989.4e12);
  EXPECT_NE(h100.source.find("data sheet"), std::string::npos);
  EXPECT_FALSE(table_peak("NVIDIA H100 80GB HBM3", DType::kF32).flops);
  EXPECT_FALSE(table_peak("Tesla V100-SXM2-16GB", DType::kBF16).flops);
  EXPECT_TRUE(table_peak("Tesla V100-SXM2-16GB", DType::kF16).flops);
  const Peak unknown = table_peak("Frobnicator 9000", DType::kBF16);
  EXPECT_FALSE(unknown.flops);
  EXPECT_NE(unknown.source.find("Frobnicator 9000"), std::string::npos);
}

}  // namespace
}  // namespace drivetrain

#include "launcher/bench/bench_options.h"

#include "kernels/error.h"
#include "launcher/bench/vary.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kFewestTimed = 3, kMostSteps = 1000000;
constexpr int kFewestRounds = 2, kMostRounds = 1000;

template <class T>
T between(const OptionValues& values, const std::string& option, T least, T most) {
  const T value = values[option].as<T>();
  if (value < least || value > most)
    throw Error(ErrorKind::kUsage, "--" + option + " " + std::to_string(value) + ": wants " + std::to_string(least) +
                                       " to " + std::to_string(most));
  return value;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

}  // namespace

OptionList step_bench_options() {
  OptionList options("options");
  options.add_options()("ranks,n", po::value<int>()->value_name("N"),
                        "number of ranks; absent: one per slot of the hosts, one per core of this machine")(
      "warmup", po::value<std::int64_t>()->default_value(3)->value_name("W"), "steps before, not timed")(
      "steps", po::value<std::int64_t>()->default_value(20)->value_name("S"), "timed steps, at least 3")(
      "real-data", "the configuration's data instead of random ids")(
      "no-compute", "also the feed test: the loader alone, against the training rate")(
      "mfu-convention", po::value<std::string>()->default_value("drivetrain")->value_name("C"),
      "how model FLOPs are counted: drivetrain, palm, megatron, megatron2024, nanogpt, llmc, torchtitan, foundry, "
      "hf, "
      "...")("peak-tflops", po::value<double>()->value_name("P"),
             "peak of one device; absent: the configuration's, a known device's, or measured on a CPU")(
      "vary", po::value<std::vector<std::string>>()->composing()->value_name("KEY=V1,V2"),
      "also measure each of these changes alone against the configuration; repeatable")(
      "rounds", po::value<int>()->default_value(5)->value_name("R"),
      "measurements of every setting with --vary, in turn")(
      "out", po::value<std::string>()->default_value("", "")->value_name("DIR"),
      "keep the measured run as DIR/bench, for 'ledger dump' and 'diagnose'")(
      "json", po::value<std::string>()->default_value("", "")->value_name("FILE"),
      "write the figures there too; - for standard output instead of the text");
  return options;
}

StepBenchOptions parse_step_bench(const OptionValues& values) {
  StepBenchOptions options;
  options.config = config_arguments(values);
  options.convention = convention_of(values["mfu-convention"].as<std::string>());
  options.warmup = between<std::int64_t>(values, "warmup", 0, kMostSteps);
  options.steps = between(values, "steps", kFewestTimed, kMostSteps);
  options.real_data = values.count("real-data") > 0;
  options.feed = values.count("no-compute") > 0;
  options.out = values["out"].as<std::string>();
  options.json = values["json"].as<std::string>();
  options.rounds = between(values, "rounds", kFewestRounds, kMostRounds);
  if (values.count("peak-tflops") > 0) {
    options.peak_tflops = values["peak-tflops"].as<double>();
    if (!(*options.peak_tflops > 0 && *options.peak_tflops < 1e9))
      throw Error(ErrorKind::kUsage, "--peak-tflops: wants TFLOP/s of one device, above 0");
  }
  if (values.count("vary") > 0) {
    options.vary = parse_vary(values["vary"].as<std::vector<std::string>>(), options.real_data);
    if (!options.out.empty())
      throw Error(ErrorKind::kUsage, "--out keeps one run and --vary makes many; give one of them");
  }
  return options;
}

std::string convention_name(FlopsConvention convention) {
  if (convention == FlopsConvention::kCausal) return "drivetrain";
  if (convention == FlopsConvention::kMegatron2024) return "megatron2024";
  return name(convention);
}

FlopsConvention convention_of(const std::string& wanted) {
  std::string known;
  for (const FlopsConvention convention : flops_conventions()) {
    if (wanted == convention_name(convention)) return convention;
    known += (known.empty() ? "" : ", ") + convention_name(convention);
  }
  throw Error(ErrorKind::kUsage, "--mfu-convention " + wanted + ": unknown; known are " + known);
}

std::vector<ConfigOverride> bench_overrides(const StepBenchOptions& options, const std::filesystem::path& folder) {
  std::vector<ConfigOverride> all = options.config.overrides;
  const auto set = [&](const std::string& key, const std::string& value) { all.push_back({key, value}); };
  set("run.dir", quoted(folder.string()));
  set("run.name", "bench");
  set("steps", std::to_string(options.warmup + options.steps));
  set("model.init", "random");
  // Small steps from random weights: nothing runs away.
  set("optimizer.lr", "1e-5");
  set("schedule.kind", "constant");
  set("schedule.warmup", "0");
  set("checkpoint.every", "0");
  set("checkpoint.at_end", "off");
  set("checkpoint.resume", "never");
  set("eval.every", "0");
  set("data.eval", "[]");
  set("sample.prompt", "''");
  set("telemetry.progress", "off");
  set("telemetry.prometheus", "off");
  set("telemetry.tensorboard", "off");
  if (options.peak_tflops) set("telemetry.peak_tflops", fixed(*options.peak_tflops, 9));
  if (options.real_data) return all;
  set("data.train", "[made-up]");
  set("data.format", "tokens");  // which needs no tokenizer
  set("data.tokenizer", "auto");
  return all;
}

}  // namespace drivetrain

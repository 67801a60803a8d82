// What `drivetrain bench` is asked for, and the configuration that measuring it needs.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/options.h"
#include "runtime/flops.h"

namespace drivetrain {

struct StepBenchOptions {
  ConfigArguments config;
  FlopsConvention convention = FlopsConvention::kCausal;
  std::int64_t warmup = 3, steps = 20;
  bool real_data = false;
  bool feed = false;                  // --no-compute
  std::optional<double> peak_tflops;  // of one device
  std::filesystem::path out;          // keeps the run folder as out/bench; empty: nothing is kept
  std::string json;                   // "-": standard output, instead of the text; empty: none
  std::vector<ConfigOverride> vary;
  int rounds = 5;  // of all settings, with --vary
};

OptionList step_bench_options();
// Throws kUsage naming option, value and what it wants.
StepBenchOptions parse_step_bench(const OptionValues& values);

// As users name them: "drivetrain" for our own, "megatron2024". flops.h has the formulas.
std::string convention_name(FlopsConvention convention);
// Throws kUsage listing the names.
FlopsConvention convention_of(const std::string& name);

// What the bench sets on top of the user's own overrides: the run folder `folder`/bench, as many steps as it times,
// made-up data unless real ones are asked for; no checkpoints, evaluation, sample or endpoint.
std::vector<ConfigOverride> bench_overrides(const StepBenchOptions& options, const std::filesystem::path& folder);

}  // namespace drivetrain

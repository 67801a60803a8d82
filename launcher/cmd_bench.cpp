// `drivetrain bench CONFIG`: as a rank of the job it was started in, or starting that job itself; with --vary many jobs.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "kernels/error.h"
#include "launcher/bench/bench_json.h"
#include "launcher/bench/bench_rank.h"
#include "launcher/bench/vary_report.h"
#include "launcher/commands.h"
#include "launcher/job.h"
#include "launcher/rank_files.h"
#include "launcher/run_setup.h"
#include "launcher/scratch_folder.h"
#include "runtime/comm/world.h"
#include "runtime/diagnosis/text.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

const Usage kUsage{
    "bench CONFIG [-n N] [options]",
    "Measures a configuration: tokens a second, model FLOPs utilisation (MFU), where the rest of the machine\n"
    "went, and what is worth changing. Trains a few steps on made-up data, in a folder of its own. Starts N\n"
    "ranks under mpirun itself; under your own mpirun or srun it is one rank.",
    "  drivetrain bench configs/quickstart.yaml -n 2\n"
    "  drivetrain bench configs/quickstart.yaml -n 2 --mfu-convention palm --steps 50 --json -\n"
    "  drivetrain bench configs/quickstart.yaml -n 2 --vary batch.micro=2,4 --vary memory.recompute=full\n"
    "  drivetrain bench configs/quickstart.yaml -n 2 --real-data --no-compute\n"
    "  mpirun -np 2 drivetrain bench configs/gpt2-124m.yaml --steps 5\n"};

OptionList all_options() {
  OptionList options = step_bench_options();
  add_config_options(options);
  add_host_options(options);
  return options;
}

bool started_as_rank(const ProcessPlace& place) {
  return place.world_size > 1 || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

int run_as_rank(const OptionValues& values, const StepBenchOptions& options, const ProcessPlace& place) {
  if (values.count("ranks") > 0 && values["ranks"].as<int>() != place.world_size)
    throw Error(ErrorKind::kUsage, "-n " + std::to_string(values["ranks"].as<int>()) + ", but the launcher started " +
                                       std::to_string(place.world_size) +
                                       " ranks; leave -n out under mpirun and srun");
  if (!options.vary.empty())
    throw Error(ErrorKind::kUsage,
                "--vary starts a job for every measurement: leave mpirun and srun out, and give "
                "-n and --host (inside an allocation the hosts are found)");
  return run_step_bench(options);
}

// Everything that can be told before a process starts: a fault as text, or "".
std::string refusal(const StepBenchOptions& options, int ranks) {
  try {
    set_up_run(load_config(options.config.file, bench_overrides(options, "unused")), ranks);
    return "";
  } catch (const Error& error) {
    const std::string text = error.what();  // the fault alone, without "the configuration has 1 fault:"
    const std::size_t line = text.find('\n');
    return line != std::string::npos && text[line - 1] == ':' ? text.substr(text.find_first_not_of(" \n", line))
                                                              : text;
  }
}

LaunchPlan planned(const StepBenchOptions& options, LaunchRequest launch, const MachineFacts& facts) {
  launch.tensor_ranks = load_config(options.config.file, bench_overrides(options, "unused")).parallel.tp;
  return plan_launch(launch, facts);
}

class VaryBench {
 public:
  VaryBench(const StepBenchOptions& options, const LaunchRequest& launch, const MachineFacts& facts)
      : options_(options), launch_(launch), facts_(facts), scratch_("drivetrain-bench") {}

  int run() {
    std::vector<Setting> settings(1);
    for (const ConfigOverride& change : options_.vary) settings.push_back({.change = change});
    for (Setting& setting : settings) setting.fault = first_line_of(refusal(with(setting), launch_.ranks));
    measure_rounds(settings, options_.rounds, [&](const Setting& s, int round) { return measure(s, round); });
    baseline_["vary"] = vary_json(settings);
    if (!options_.json.empty()) write_bench_json(baseline_, options_.json);
    if (options_.json != "-") std::fputs(vary_text(settings, options_.rounds).c_str(), stdout);
    return 0;
  }

 private:
  static std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

  StepBenchOptions with(const Setting& setting) const {
    StepBenchOptions options = options_;
    if (setting.change) options.config.overrides.push_back(*setting.change);
    return options;
  }

  std::vector<std::string> words(const Setting& setting) const {
    std::vector<std::string> all{facts_.program, "bench", fs::absolute(options_.config.file).string()};
    const auto add = [&](const std::string& option, const std::string& value) {
      all.insert(all.end(), {option, value});
    };
    for (const ConfigOverride& o : with(setting).config.overrides) add("--set", o.key + "=" + o.value);
    add("--warmup", std::to_string(options_.warmup));
    add("--steps", std::to_string(options_.steps));
    add("--mfu-convention", convention_name(options_.convention));
    if (options_.peak_tflops) add("--peak-tflops", fixed(*options_.peak_tflops, 9));
    if (options_.real_data) all.emplace_back("--real-data");
    if (options_.feed) all.emplace_back("--no-compute");
    return all;
  }

  Measured measure(const Setting& setting, int round) {
    const fs::path figures = scratch_.path() / "figures.json";
    fs::remove(figures);
    LaunchRequest launch = launch_;
    launch.program = words(setting);
    launch.environment_options.push_back(kFiguresVariable + ("=" + figures.string()));
    const Attempt attempt(scratch_.path());
    launch.rank_folder = attempt.rank_folder();
    const Outcome outcome =
        supervise(planned(with(setting), launch, facts_), attempt, {.grace = std::chrono::seconds(1)});
    if (outcome.exit_code == exit_code(ErrorKind::kStopped)) throw Error(ErrorKind::kStopped, "stopped on request");
    if (outcome.exit_code != 0) return {std::nullopt, outcome.text()};
    std::ifstream in(figures);
    if (!in)
      throw Error(ErrorKind::kIo, "rank 0 left no figures in " + scratch_.path().string() +
                                      ": it runs on a host that does not share this folder; set TMPDIR to one that "
                                      "the hosts share");
    const auto whole = nlohmann::ordered_json::parse(in);
    const auto& json = whole["report"];
    if (!setting.change && round == 0) {
      baseline_ = json;
      if (options_.json != "-") std::fputs(whole["text"].get<std::string>().c_str(), stdout);
    }
    Setting::Figures f{json["tokens_per_s"]["median"], json["step_ms"]["median"], std::nullopt};
    if (!json["mfu"].is_null()) f.mfu = json["mfu"].get<double>();
    log_info("round " + std::to_string(round + 1) + " of " + std::to_string(options_.rounds) + ": " +
             setting.label() + ", " + std::to_string(std::llround(f.tokens_per_s)) + " tokens/s");
    return {f, ""};
  }

  const StepBenchOptions& options_;
  const LaunchRequest& launch_;
  const MachineFacts& facts_;
  ScratchFolder scratch_;
  nlohmann::ordered_json baseline_;  // of the first round
};

int run_one_job(Arguments arguments, const StepBenchOptions& options, LaunchRequest launch,
                const MachineFacts& facts) {
  launch.program = {facts.program, "bench"};
  launch.program.insert(launch.program.end(), arguments.begin(), arguments.end());
  ScratchFolder scratch("drivetrain-bench");
  const Attempt attempt(scratch.path());
  launch.rank_folder = attempt.rank_folder();
  const int code = run_job(planned(options, launch, facts), attempt, {.grace = std::chrono::seconds(1)});
  if (code != 0) scratch.keep();
  return code;
}

}  // namespace

int cmd_bench(Arguments arguments) {
  OptionList options = all_options();
  const auto values = parse_options(arguments, kUsage, options, {"config"});
  if (!values) return 0;
  const StepBenchOptions bench = parse_step_bench(*values);
  const ProcessPlace place = process_place();
  if (started_as_rank(place)) return run_as_rank(*values, bench, place);

  const MachineFacts facts = gather_machine_facts((*values)["mpirun"].as<std::string>());
  LaunchRequest launch = host_request(*values, facts);
  const LaunchPlan plan = planned(bench, launch, facts);
  launch.ranks = static_cast<int>(plan.rank_host.size());
  set_up_run(load_config(bench.config.file, bench_overrides(bench, "unused")),
             launch.ranks);  // refuses before it starts
  for (const std::string& remark : plan.remarks) log_info(remark);
  wait_for_hosts(launch, *values);
  if (bench.vary.empty()) return run_one_job(arguments, bench, launch, facts);
  return VaryBench(bench, launch, facts).run();
}

}  // namespace drivetrain

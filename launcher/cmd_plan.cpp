// drivetrain plan: what a run will hold and compute, without starting it.
#include <cstdio>
#include <string>
#include <thread>

#include "kernels/cpu/cpu_device.h"
#include "launcher/commands.h"
#include "launcher/memory_plan.h"
#include "launcher/options.h"
#include "launcher/plan_text.h"

namespace drivetrain {

int cmd_plan(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("ranks,n", po::value<int>()->default_value(1)->value_name("N"), "ranks of the run")(
      "ranks-per-host", po::value<int>()->default_value(0)->value_name("N"),
      "ranks that share one host's memory (0: all of them)");
  add_config_options(options);
  const Usage usage{
      "plan CONFIG [options]",
      "Prints parameters, FLOPs per token and the bytes of each rank by class, and says whether the run fits "
      "into this machine's memory. Starts no rank.",
      "  drivetrain plan configs/gpt2-124m.yaml -n 2\n"
      "  drivetrain plan configs/gpt2-124m.yaml -n 8 --set memory.recompute=full\n"};
  const auto values = parse_options(arguments, usage, options, {"config"});
  if (!values) return 0;
  const int ranks = (*values)["ranks"].as<int>(), per_host = (*values)["ranks-per-host"].as<int>();
  if (ranks < 1 || per_host < 0)
    throw Error(ErrorKind::kUsage, "--ranks = " + std::to_string(ranks) + ", --ranks-per-host = " +
                                       std::to_string(per_host) + ": ranks must be at least 1");
  const ConfigArguments source = config_arguments(*values);
  const Config config = load_config(source.file, source.overrides);
  const RunSetup setup = set_up_run(config, ranks);
  const auto device = make_cpu_device(1);
  const MemoryPlan plan = plan_memory(setup, device->ops());
  const HostMemory memory = host_memory(config.memory.limit_gb);
  std::fputs(plan_text(setup, plan, memory, per_host > 0 ? per_host : ranks).c_str(), stdout);
  return fits(plan, memory, per_host > 0 ? per_host : ranks) ? 0 : exit_code(ErrorKind::kMemory);
}

}  // namespace drivetrain

// `drivetrain launch CONFIG -n N`: checks the configuration, plans the mpirun command, runs and watches it.
#include <cstdio>
#include <optional>

#include "kernels/cpu/cpu_device.h"
#include "kernels/error.h"
#include "launcher/commands.h"
#include "launcher/job.h"
#include "launcher/memory_plan.h"
#include "launcher/report/end_report.h"
#include "launcher/run_setup.h"
#include "launcher/shared_memory.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

namespace po = boost::program_options;

const Usage kUsage{"launch CONFIG [-n N] [options] [-- PROGRAM ARGS]",
                   "Starts N ranks of 'drivetrain train CONFIG' (or of PROGRAM) under mpirun and watches them. Hosts "
                   "come from --host,\n"
                   "else --hostfile, else the Slurm allocation, else the MPIJob hostfile, else this machine. Ctrl-C "
                   "or SIGTERM makes the\n"
                   "ranks save a checkpoint and exit with 75. The exit code is that of the first rank that fails.",
                   "  drivetrain launch configs/quickstart.yaml -n 2\n"
                   "  drivetrain launch configs/tiny.yaml -n 4 --set parallel.tp=2 --dry-run\n"
                   "  drivetrain launch run.yaml -n 16 --host node1:8,node2:8 --interface eth0 --env WANDB_API_KEY\n"
                   "  drivetrain launch run.yaml --hostfile hosts.txt\n"};

OptionList launch_options() {
  OptionList options("options");
  options.add_options()("ranks,n", po::value<int>()->value_name("N"),
                        "number of ranks; absent: one per slot of the hosts, one per core of this machine");
  options.add_options()("dry-run", "print the exact command and environment, start nothing");
  add_config_options(options);
  add_host_options(options);
  options.add_options()("grace", po::value<double>()->default_value(120, "120")->value_name("SECONDS"),
                        "time for a checkpoint after a stop signal");
  return options;
}

std::vector<std::string> train_command(const ConfigArguments& config, const std::string& binary) {
  std::vector<std::string> words{binary, "train", std::filesystem::absolute(config.file).string()};
  for (const ConfigOverride& one : config.overrides) {
    words.insert(words.end(), {"--set", one.key + "=" + one.value});
  }
  return words;
}

// What the ranks of one machine share: memory for Open MPI's own messages, and what the run plans to keep there.
void prepare_shared_memory(const Config& config, int ranks, const std::optional<RunSetup>& setup) {
  const int removed = remove_open_mpi_leftovers(kSharedMemory);
  if (removed > 0) log_info("removed " + std::to_string(removed) + " segments of killed jobs from " + kSharedMemory);
  if (ranks < 2) return;
  std::size_t per_rank = kOpenMpiBytesPerRank;
  if (setup && config.comm.transport != "mpi") {
    constexpr std::size_t kControlAndStaging = std::size_t{1} << 20;
    const MemoryPlan plan = plan_memory(*setup, make_cpu_device(1)->ops());
    per_rank += kControlAndStaging + plan.weight_bytes + plan.gradient_bytes + plan.activation_bytes;
  }
  check_shared_memory(kSharedMemory, ranks, per_rank);
}

}  // namespace

int cmd_launch(Arguments arguments) {
  std::size_t own = 0;
  while (own < arguments.size() && arguments[own] != "--") ++own;
  const auto values = parse_options(arguments.first(own), kUsage, launch_options(), {"config"});
  if (!values) return 0;
  const ConfigArguments config_words = config_arguments(*values);
  const Config config = load_config(config_words.file, config_words.overrides);
  const MachineFacts facts = gather_machine_facts((*values)["mpirun"].as<std::string>());
  LaunchRequest request = host_request(*values, facts);
  request.tensor_ranks = config.parallel.tp;
  request.program = own < arguments.size() ? std::vector<std::string>(arguments.begin() + own + 1, arguments.end())
                                           : train_command(config_words, facts.program);
  if (request.program.empty()) throw Error(ErrorKind::kUsage, "-- wants a program after it");
  request.rank_folder = std::filesystem::absolute(config.run_folder()) / "attempt-K" / "ranks";
  const SuperviseOptions options{.grace = duration_of(*values, "grace")};

  LaunchPlan plan = plan_launch(request, facts);  // refuses before anything is made
  check_for_ranks(config, static_cast<int>(plan.rank_host.size()));
  std::optional<RunSetup> setup;
  if (own == arguments.size())
    setup = set_up_run(config, static_cast<int>(plan.rank_host.size()));  // what each rank would refuse
  for (const std::string& remark : plan.remarks) log_info(remark);
  if (values->count("dry-run") > 0) {
    std::fputs(dry_run_text(plan, facts.environment).c_str(), stdout);
    return 0;
  }
  if (request.hosts.hosts.size() == 1 && request.hosts.hosts[0].name == "localhost")
    prepare_shared_memory(config, static_cast<int>(plan.rank_host.size()), setup);
  wait_for_hosts(request, *values);
  const Attempt attempt(config.run_folder());
  request.rank_folder = attempt.rank_folder();
  plan = plan_launch(request, facts);
  attempt.write_command(dry_run_text(plan, facts.environment));
  log_info(std::to_string(plan.rank_host.size()) + " ranks on " + request.hosts.source + ", files in " +
           attempt.folder().string());
  const int code = run_job(plan, attempt, options);
  if (own == arguments.size() && config.telemetry.report) write_end_report(config.run_folder());
  return code;
}

}  // namespace drivetrain

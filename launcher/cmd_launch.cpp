// `drivetrain launch CONFIG -n N`: checks the configuration, plans the mpirun command, runs and watches it.
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "launcher/launch_plan.h"
#include "launcher/options.h"
#include "launcher/run_setup.h"
#include "launcher/supervise.h"
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
  options.add_options()("host", po::value<std::string>()->default_value("", "")->value_name("H1:S,H2:S"),
                        "hosts with their slots; node[1-4]:8 is four hosts");
  options.add_options()("hostfile", po::value<std::string>()->default_value("", "")->value_name("FILE"),
                        "file with lines 'HOST slots=S'");
  options.add_options()("dry-run", "print the exact command and environment, start nothing");
  add_config_options(options);
  options.add_options()("env", po::value<std::vector<std::string>>()->composing()->value_name("K[=V]"),
                        "give every rank the variable K, with our value or with V; repeatable");
  options.add_options()("oversubscribe", po::value<std::string>()->default_value("auto")->value_name("auto|on|off"),
                        "more ranks than cores: auto allows it on this machine and says so");
  options.add_options()("interface", po::value<std::string>()->default_value("", "")->value_name("NAME"),
                        "network interface (or its network, as 10.0.0.0/24) for MPI and NCCL");
  options.add_options()("grace", po::value<double>()->default_value(120, "120")->value_name("SECONDS"),
                        "time for a checkpoint after a stop signal");
  options.add_options()("wait-hosts", po::value<double>()->default_value(60, "60")->value_name("SECONDS"),
                        "how long to wait until the names of the hosts resolve");
  options.add_options()("mpirun", po::value<std::string>()->default_value("mpirun")->value_name("PATH"),
                        "the mpirun to use");
  return options;
}

Oversubscribe oversubscribe_of(const std::string& word) {
  if (word == "auto") return Oversubscribe::kAuto;
  if (word == "on") return Oversubscribe::kOn;
  if (word == "off") return Oversubscribe::kOff;
  throw Error(ErrorKind::kUsage, "--oversubscribe " + word + ": wants auto, on or off");
}

std::chrono::milliseconds duration_of(const OptionValues& values, const std::string& option) {
  const double seconds = values[option].as<double>();
  if (!(seconds >= 0 && seconds <= 1e6))
    throw Error(ErrorKind::kUsage, "--" + option + ": wants 0 to 1000000 seconds");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string new_job_token() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    random = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  char text[64];
  std::snprintf(text, sizeof text, "%d-%016llx", getpid(), static_cast<unsigned long long>(random));
  return text;
}

std::vector<std::string> train_command(const ConfigArguments& config, const std::string& binary) {
  std::vector<std::string> words{binary, "train", std::filesystem::absolute(config.file).string()};
  for (const ConfigOverride& one : config.overrides) {
    words.insert(words.end(), {"--set", one.key + "=" + one.value});
  }
  return words;
}

LaunchRequest make_request(const OptionValues& values, const Config& config, const MachineFacts& facts) {
  LaunchRequest request;
  if (values.count("ranks") > 0) {
    request.ranks = values["ranks"].as<int>();
    if (request.ranks < 1) {
      throw Error(ErrorKind::kUsage, "-n " + std::to_string(request.ranks) + ": wants at least one rank");
    }
  }
  request.tensor_ranks = config.parallel.tp;
  request.hosts = choose_hosts(
      {values["host"].as<std::string>(), values["hostfile"].as<std::string>(), facts.environment, facts.cores});
  request.job = new_job_token();
  request.interface = values["interface"].as<std::string>();
  if (values.count("env") > 0) request.environment_options = values["env"].as<std::vector<std::string>>();
  request.oversubscribe = oversubscribe_of(values["oversubscribe"].as<std::string>());
  return request;
}

bool is_local(const HostList& list) {
  return list.hosts.size() == 1 && list.hosts[0].name == "localhost";
}

int run_job(const LaunchPlan& plan, const Attempt& attempt, const SuperviseOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = supervise(plan, attempt, options);
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  attempt.write_result(outcome, static_cast<int>(plan.rank_host.size()), wall);
  if (outcome.reason.empty()) return outcome.exit_code;
  if (outcome.world_rank > 0) {
    const std::vector<std::string> lines = attempt.last_error_lines(outcome.world_rank, 30);
    if (!lines.empty()) std::fprintf(stderr, "--- last lines of rank %d:\n", outcome.world_rank);
    for (const std::string& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
  }
  log_critical("the job failed: " + outcome.text() + "; exit code " + std::to_string(outcome.exit_code) +
               ", files in " + attempt.folder().string());
  return outcome.exit_code;
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
  LaunchRequest request = make_request(*values, config, facts);
  request.program = own < arguments.size() ? std::vector<std::string>(arguments.begin() + own + 1, arguments.end())
                                           : train_command(config_words, facts.program);
  if (request.program.empty()) throw Error(ErrorKind::kUsage, "-- wants a program after it");
  request.rank_folder = std::filesystem::absolute(config.run_folder()) / "attempt-K" / "ranks";
  const SuperviseOptions options{.grace = duration_of(*values, "grace")};
  const auto patience = duration_of(*values, "wait-hosts");

  LaunchPlan plan = plan_launch(request, facts);  // refuses before anything is made
  check_for_ranks(config, static_cast<int>(plan.rank_host.size()));
  if (own == arguments.size())
    set_up_run(config, static_cast<int>(plan.rank_host.size()));  // what each rank would refuse
  for (const std::string& remark : plan.remarks) log_info(remark);
  if (values->count("dry-run") > 0) {
    std::fputs(dry_run_text(plan, facts.environment).c_str(), stdout);
    return 0;
  }
  if (!is_local(request.hosts)) wait_for_names(request.hosts, patience, resolves, log_info);
  const Attempt attempt(config.run_folder());
  request.rank_folder = attempt.rank_folder();
  plan = plan_launch(request, facts);
  attempt.write_command(dry_run_text(plan, facts.environment));
  log_info(std::to_string(plan.rank_host.size()) + " ranks on " + request.hosts.source + ", files in " +
           attempt.folder().string());
  return run_job(plan, attempt, options);
}

}  // namespace drivetrain

#include "launcher/job.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>

#include "kernels/error.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

namespace po = boost::program_options;

Oversubscribe oversubscribe_of(const std::string& word) {
  if (word == "auto") return Oversubscribe::kAuto;
  if (word == "on") return Oversubscribe::kOn;
  if (word == "off") return Oversubscribe::kOff;
  throw Error(ErrorKind::kUsage, "--oversubscribe " + word + ": wants auto, on or off");
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

bool is_local(const HostList& list) {
  return list.hosts.size() == 1 && list.hosts[0].name == "localhost";
}

}  // namespace

void add_host_options(OptionList& options) {
  options.add_options()("host", po::value<std::string>()->default_value("", "")->value_name("H1:S,H2:S"),
                        "hosts with their slots; node[1-4]:8 is four hosts");
  options.add_options()("hostfile", po::value<std::string>()->default_value("", "")->value_name("FILE"),
                        "file with lines 'HOST slots=S'");
  options.add_options()("env", po::value<std::vector<std::string>>()->composing()->value_name("K[=V]"),
                        "give every rank the variable K, with our value or with V; repeatable");
  options.add_options()("oversubscribe", po::value<std::string>()->default_value("auto")->value_name("auto|on|off"),
                        "more ranks than cores: auto allows it on this machine and says so");
  options.add_options()("interface", po::value<std::string>()->default_value("", "")->value_name("NAME"),
                        "network interface (or its network, as 10.0.0.0/24) for MPI and NCCL");
  options.add_options()("wait-hosts", po::value<double>()->default_value(60, "60")->value_name("SECONDS"),
                        "how long to wait until the names of the hosts resolve");
  options.add_options()("mpirun", po::value<std::string>()->default_value("mpirun")->value_name("PATH"),
                        "the mpirun to use");
}

LaunchRequest host_request(const OptionValues& values, const MachineFacts& facts) {
  LaunchRequest request;
  if (values.count("ranks") > 0) {
    request.ranks = values["ranks"].as<int>();
    if (request.ranks < 1) {
      throw Error(ErrorKind::kUsage, "-n " + std::to_string(request.ranks) + ": wants at least one rank");
    }
  }
  request.hosts = choose_hosts(
      {values["host"].as<std::string>(), values["hostfile"].as<std::string>(), facts.environment, facts.cores});
  request.job = new_job_token();
  request.interface = values["interface"].as<std::string>();
  if (values.count("env") > 0) request.environment_options = values["env"].as<std::vector<std::string>>();
  request.oversubscribe = oversubscribe_of(values["oversubscribe"].as<std::string>());
  return request;
}

std::chrono::milliseconds duration_of(const OptionValues& values, const std::string& option) {
  const double seconds = values[option].as<double>();
  if (!(seconds >= 0 && seconds <= 1e6))
    throw Error(ErrorKind::kUsage, "--" + option + ": wants 0 to 1000000 seconds");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void wait_for_hosts(const LaunchRequest& request, const OptionValues& values) {
  const auto patience = duration_of(values, "wait-hosts");
  if (!is_local(request.hosts)) wait_for_names(request.hosts, patience, resolves, log_info);
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

}  // namespace drivetrain

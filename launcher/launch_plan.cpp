#include "launcher/launch_plan.h"

#include <algorithm>
#include <set>

#include "kernels/error.h"
#include "launcher/environment_list.h"
#include "launcher/rank_files.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

// The one dialect of mpirun spoken here.
void check_mpirun(const MachineFacts& facts) {
  const std::string& text = facts.mpirun_version;
  if (facts.mpirun.empty()) {
    throw Error(ErrorKind::kPreflight,
                "mpirun is not in PATH; install Open MPI 4.1 (Debian: openmpi-bin) or name it with "
                "--mpirun PATH");
  }
  const std::size_t at = text.find("(Open MPI) ");
  if (at != std::string::npos && text.compare(at + 11, 4, "4.1.") == 0) return;
  const std::string first_line = text.substr(0, text.find('\n'));
  throw Error(ErrorKind::kPreflight,
              facts.mpirun + " says '" + first_line +
                  "'; launch speaks Open MPI 4.1 only. Start the ranks by hand with 'mpirun ... "
                  "drivetrain train CONFIG', or name another one with --mpirun PATH");
}

bool is_this_machine(const std::string& host, const MachineFacts& facts) {
  return host == "localhost" || host == "127.0.0.1" || host.substr(0, host.find('.')) == facts.host_name;
}

class Planner {
 public:
  Planner(const LaunchRequest& request, const MachineFacts& facts) : request_(request), facts_(facts) {}

  LaunchPlan plan() {
    check_mpirun(facts_);
    decide_ranks();
    decide_environment();
    plan_.argv = {facts_.mpirun, "-np", std::to_string(ranks_), "--bind-to", "none"};
    add_hosts();
    add_tuning();
    add_interface();
    for (const auto& name : passed_) add({"-x", name});
    add({facts_.program, "rank-exec", "--"});
    plan_.argv.insert(plan_.argv.end(), request_.program.begin(), request_.program.end());
    return plan_;
  }

 private:
  void add(const std::vector<std::string>& words) { plan_.argv.insert(plan_.argv.end(), words.begin(), words.end()); }
  // An MCA parameter, unless the user has set it: OMPI_MCA_* wins.
  void add_mca(const std::string& name, const std::string& value) {
    const auto user = facts_.environment.find("OMPI_MCA_" + name);
    if (user == facts_.environment.end()) return add({"--mca", name, value});
    plan_.remarks.push_back("OMPI_MCA_" + name + "=" + user->second +
                            " of the environment is kept (launch would use '" + value + "')");
  }

  void decide_ranks() {
    const int slots = total_slots(request_.hosts);
    local_ = request_.hosts.hosts.size() == 1 && is_this_machine(request_.hosts.hosts[0].name, facts_);
    ranks_ = request_.ranks > 0 ? request_.ranks : slots > 0 ? slots : local_ ? facts_.cores : 0;
    if (ranks_ == 0) {
      throw Error(ErrorKind::kUsage,
                  request_.hosts.source + " gives no number of slots; say how many ranks with -n N");
    }
    placed_ = place_ranks(request_.hosts, ranks_);
    const bool too_many = slots > 0 && ranks_ > slots;
    const bool shared = too_many || (local_ && ranks_ > facts_.cores);
    const std::string room = too_many ? std::to_string(slots) + " slots" : std::to_string(facts_.cores) + " cores";
    const std::string fact = std::to_string(ranks_) + " ranks on " + room;
    const bool refused = request_.oversubscribe == Oversubscribe::kOff ||
                         (request_.oversubscribe == Oversubscribe::kAuto && !local_ && too_many);
    if (shared && refused) {
      throw Error(ErrorKind::kUsage, fact + " of " + request_.hosts.source +
                                         ": give more slots, fewer ranks, or --oversubscribe on to share cores");
    }
    if (shared) {
      plan_.remarks.push_back(fact + ": ranks share cores, which is correct but slow; all " + std::to_string(ranks_) +
                              " are started");
    }
    oversubscribed_ = shared;
    for (std::size_t h = 0; h < placed_.size(); ++h) {
      const std::string name = local_ ? facts_.host_name : request_.hosts.hosts[h].name;
      plan_.rank_host.insert(plan_.rank_host.end(), static_cast<std::size_t>(placed_[h]), name);
      if (placed_[h] % request_.tensor_ranks != 0) {
        plan_.remarks.push_back(name + " gets " + std::to_string(placed_[h]) +
                                " ranks, not a multiple of parallel.tp " + std::to_string(request_.tensor_ranks) +
                                ": a tensor-parallel group spans hosts, which is slow");
      }
    }
  }

  void decide_environment() {
    Environment& ours = plan_.environment;
    if (facts_.user == MachineFacts::User::kRoot) {
      const bool said = facts_.environment.count("OMPI_ALLOW_RUN_AS_ROOT") > 0 &&
                        facts_.environment.count("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") > 0;
      ours["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
      ours["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
      if (!said) {
        plan_.remarks.push_back(
            "running as root: OMPI_ALLOW_RUN_AS_ROOT and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM are set for "
            "mpirun, which refuses root otherwise");
      }
    }
    ours[kRankFolderVariable] = request_.rank_folder.string();
    ours[kJobVariable] = request_.job;
    ours[kTerminalVariable] = std::to_string(facts_.terminal_columns);
    for (const auto& [name, value] : facts_.environment) {
      if (name.starts_with("SLURM_CPU_BIND")) plan_.removed.push_back(name);
      if (is_passed_on(name)) passed_.insert(name);
    }
    passed_.insert({kRankFolderVariable, kJobVariable, kTerminalVariable});
    for (const auto& [name, value] : parse_environment_options(request_.environment_options, facts_.environment)) {
      ours[name] = value;
      passed_.insert(name);
    }
  }

  void add_hosts() {
    std::string hosts;
    bool dotted = false;
    for (std::size_t h = 0; h < placed_.size(); ++h) {
      const std::string& name = request_.hosts.hosts[h].name;
      if (placed_[h] == 0) {
        plan_.remarks.push_back("host " + name + " gets no rank");
        continue;
      }
      dotted = dotted || name.find('.') != std::string::npos;
      hosts += (hosts.empty() ? "" : ",") + (local_ ? "localhost" : name) + ":" + std::to_string(placed_[h]);
    }
    add({"--host", hosts, "--map-by", "slot"});
    if (oversubscribed_) add({"--oversubscribe"});
    if (oversubscribed_) add_mca("mpi_yield_when_idle", "1");
    if (local_) return add_mca("plm", "isolated");
    // The path as found, so that hosts need no PATH of their own: /usr of /usr/bin/mpirun.
    add({"--prefix", std::filesystem::path(facts_.mpirun).parent_path().parent_path().string()});
    if (dotted) add_mca("orte_keep_fqdn_hostnames", "1");
  }

  void add_tuning() {
    add_mca("pml", "ob1");
    add_mca("btl", local_ ? "self,vader" : "self,vader,tcp");
    if (local_) return;
    add_mca("oob_tcp_keepalive_time", "20");
    add_mca("oob_tcp_keepalive_intvl", "5");
    add_mca("oob_tcp_keepalive_probes", "4");
    add_mca("plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10");
  }

  void add_interface() {
    if (request_.interface.empty()) return;
    std::string listed;
    std::vector<std::string> names;
    for (const NetworkInterface& one : facts_.interfaces) {
      listed += (listed.empty() ? "" : ", ") + one.name + " (" + one.cidr + ")";
      names.push_back(one.name);
      if (request_.interface != one.name && request_.interface != one.cidr) continue;
      plan_.argv.insert(plan_.argv.end(),
                        {"--mca", "btl_tcp_if_include", one.cidr, "--mca", "oob_tcp_if_include", one.cidr});
      if (local_) retarget_btl();
      plan_.environment["NCCL_SOCKET_IFNAME"] = "=" + one.name;
      passed_.insert("NCCL_SOCKET_IFNAME");
      return;
    }
    const std::string near = nearest_word(request_.interface, names);
    throw Error(ErrorKind::kUsage, "no network interface '" + request_.interface + "'" +
                                       (near.empty() ? "" : "; did you mean '" + near + "'?") + " This machine has " +
                                       listed);
  }

  // Without tcp in the list there is no interface to choose.
  void retarget_btl() {
    const auto btl = std::find(plan_.argv.begin(), plan_.argv.end(), "self,vader");
    if (btl != plan_.argv.end()) *btl = "self,vader,tcp";
  }

  const LaunchRequest& request_;
  const MachineFacts& facts_;
  LaunchPlan plan_;
  int ranks_ = 0;
  bool local_ = false;
  bool oversubscribed_ = false;
  std::vector<int> placed_;
  std::set<std::string> passed_;  // names for -x
};

}  // namespace

LaunchPlan plan_launch(const LaunchRequest& request, const MachineFacts& facts) {
  return Planner(request, facts).plan();
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=,@%+";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string dry_run_text(const LaunchPlan& plan, const Environment& own) {
  std::string text = "# environment\n";
  Environment shown = plan.environment;
  for (std::size_t i = 0; i + 1 < plan.argv.size() && plan.argv[i] != "--"; ++i) {
    const auto found = plan.argv[i] == "-x" ? own.find(plan.argv[i + 1]) : own.end();
    if (found != own.end()) shown.emplace(found->first, found->second);
  }
  for (const std::string& name : plan.removed) text += "unset " + name + "\n";
  for (const auto& [name, value] : shown) {
    text +=
        is_secret(name) ? "# export " + name + "=(hidden)\n" : "export " + name + "=" + shell_quoted(value) + "\n";
  }
  text += "# command\n";
  for (std::size_t i = 0; i < plan.argv.size(); ++i) text += (i == 0 ? "" : " ") + shell_quoted(plan.argv[i]);
  return text + "\n";
}

}  // namespace drivetrain

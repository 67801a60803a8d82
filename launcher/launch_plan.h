// What launch is about to run: the mpirun command and its environment, computed from the request, the hosts and facts
// about this machine. Pure data in, pure data out; it starts nothing.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "launcher/hosts.h"
#include "launcher/machine_facts.h"

namespace drivetrain {

enum class Oversubscribe { kAuto, kOn, kOff };  // auto: allowed on this machine only

struct LaunchRequest {
  int ranks = 0;  // 0: as many as the hosts have slots
  int tensor_ranks = 1;
  HostList hosts;
  std::vector<std::string> program;              // what every rank runs
  std::filesystem::path rank_folder;             // absolute; see rank_files.h
  std::string job;                               // token in the environment of every process of this job
  std::string interface;                         // network interface name or CIDR; "": Open MPI's choice
  std::vector<std::string> environment_options;  // "K" or "K=V", from --env
  Oversubscribe oversubscribe = Oversubscribe::kAuto;
};

struct LaunchPlan {
  std::vector<std::string> argv;       // argv[0] is the path of mpirun
  Environment environment;             // set on top of our own
  std::vector<std::string> removed;    // variables of ours that mpirun must not see
  std::vector<std::string> remarks;    // what the user should know, whole sentences
  std::vector<std::string> rank_host;  // by world rank
};

// Throws kUsage (too many ranks, bad --env, no such interface) or kPreflight (no mpirun, not Open MPI 4.1).
LaunchPlan plan_launch(const LaunchRequest& request, const MachineFacts& facts);

// A shell script that does the same by hand: exports, then the command, quoted. Values whose names look secret are hidden.
std::string dry_run_text(const LaunchPlan& plan, const Environment& own);

std::string shell_quoted(const std::string& word);

}  // namespace drivetrain

// Which hosts a job runs on, and with how many ranks each: --host, a hostfile, Slurm, an MPIJob, or this machine. Reads
// names only; it starts nothing and opens no connection.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace drivetrain {

struct HostSlots {
  std::string name;
  int slots = 0;  // ranks that fit; 0: not said
};

struct HostList {
  std::vector<HostSlots> hosts;  // in the order of their ranks
  std::string source;            // "--host", "hostfile F", "Slurm allocation", "MPIJob hostfile F", "this machine"
};

using Environment = std::map<std::string, std::string>;

struct HostRequest {
  std::string host_option = {};  // "h1:2,h[2-4]:2"; "": not given
  std::string hostfile = {};     // "": not given
  Environment environment = {};
  int local_cores = 1;
};

// The first source that speaks wins, in the order of HostRequest and then Slurm, MPIJob, this machine. Throws kUsage with
// every fault: a missing file, bad or duplicate names, bad slots, hosts outside the Slurm allocation.
HostList choose_hosts(const HostRequest& request);

// "n[1-3,07],m" is n1 n2 n3 n07 m, as Slurm writes it. Throws kUsage.
std::vector<std::string> expand_host_names(const std::string& text);

// Ranks per host, in order, that sum to `ranks`: slots first, what is left one by one; evenly when no slots are said.
std::vector<int> place_ranks(const HostList& list, int ranks);
// Sum of the slots; 0 when not said.
int total_slots(const HostList& list);

using Resolver = std::function<bool(const std::string& name)>;
bool resolves(const std::string& name);

// Waits until every name resolves, asking once a second and telling `progress` what is missing. Throws kLaunch naming the
// hosts that do not resolve in time. The bound is `patience` plus one last look-up.
void wait_for_names(const HostList& list, std::chrono::milliseconds patience, const Resolver& resolver,
                    const std::function<void(const std::string&)>& progress);

}  // namespace drivetrain

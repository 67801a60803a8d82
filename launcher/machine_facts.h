// What launch needs to know about this machine before it plans. Gathered once; the planner itself asks nothing.
#pragma once
#include <string>
#include <vector>

#include "launcher/hosts.h"

namespace drivetrain {

struct NetworkInterface {
  std::string name;
  std::string cidr;  // IPv4 network, "10.0.0.0/24"
};

struct MachineFacts {
  enum class User { kRoot, kOther };
  std::string mpirun;          // path; "" when there is none
  std::string mpirun_version;  // what `mpirun --version` prints
  std::string program;         // path of this drivetrain binary
  std::string host_name;       // short
  int cores = 1;               // physical ones this process may use
  int terminal_columns = 0;    // of standard output; 0: not a terminal
  User user = User::kOther;
  Environment environment;  // ours
  std::vector<NetworkInterface> interfaces;
};

// mpirun: a path or a name looked up in PATH. Does not throw when it is absent; the plan says so.
MachineFacts gather_machine_facts(const std::string& mpirun);
Environment own_environment();
// Those that are up and have an IPv4 address, loopback among them.
std::vector<NetworkInterface> network_interfaces();

}  // namespace drivetrain

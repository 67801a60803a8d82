// The processes of this host that take processor time beside the job: who competes with a rank for its cores.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/monitor/system_root.h"

namespace drivetrain {

struct Neighbour {
  int pid = 0;
  std::string name;      // of the program, as the kernel keeps it (15 characters)
  double cpu_cores = 0;  // processor time per time since the scan before
  int cpu = 0;           // that it ran on last
};

class NeighbourScan {
 public:
  explicit NeighbourScan(const SystemRoot& root);
  // The busiest, most first, at most three, each at least a tenth of a core; without this process and the other ranks:
  // same program, same parent. Empty the first time. Reads a file per process: not for every sample.
  std::vector<Neighbour> scan(double now_s);

 private:
  struct Identity {
    int pid;
    double start_time;  // tells a process from an earlier one of the same number
    auto operator<=>(const Identity&) const = default;
  };

  SystemRoot root_;
  double ticks_per_s_;
  double last_s_ = 0;
  std::map<Identity, double> ticks_;  // of processor time, at the scan before
};

}  // namespace drivetrain

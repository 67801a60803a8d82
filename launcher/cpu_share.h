// The share of a host's processors that one of its ranks gets. Pure, but for allowed_cpus() which asks the kernel.
#pragma once
#include <vector>

namespace drivetrain {

struct CpuPlace {
  int cpu = 0;   // as the kernel numbers them
  int core = 0;  // cpus of one physical core share it; unique over packages
};

struct CpuShare {
  std::vector<int> cpus;  // to be pinned to
  int threads = 1;        // physical cores in the share
};

// The cpus this process may use, cores together.
std::vector<CpuPlace> allowed_cpus();
int count_cores(const std::vector<CpuPlace>& places);

// Cuts the cores into local_size even slices and returns slice local_rank. With more ranks than cores nobody is pinned:
// everyone gets all cpus and one thread.
CpuShare share_of(const std::vector<CpuPlace>& places, int local_rank, int local_size);

}  // namespace drivetrain

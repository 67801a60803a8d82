// What about this host and this rank does not change while training runs, and explains why it may be slow or hang: the
// facts behind the incident rules of `drivetrain diagnose`. Gathered once at start-up; unknown facts stay at their
// default.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/monitor/reading.h"
#include "runtime/monitor/system_root.h"

namespace drivetrain {

struct HostFacts {
  std::string host;
  int world_rank = 0, local_rank = 0, local_size = 1;
  int compute_threads = 0;  // that the rank was told to compute with
  int online_cpus = 0;      // of the host
  std::string affinity;     // cpus this rank may use, "0-3,8"
  int affinity_cpus = 0;
  std::vector<int> affinity_nodes;         // NUMA nodes that those cpus belong to
  int numa_nodes = 0;                      // of the host
  std::string cpu_model, kernel;           // "AMD EPYC 9654 96-Core Processor", "6.1.0-18-amd64"
  std::string governor;                    // of the rank's first cpu: "performance", "powersave"
  std::string thp;                         // transparent huge pages: "always", "madvise", "never"
  std::vector<std::string> kernel_flags;   // of the kernel's command line: iommu, isolcpus, nohz_full, ...
  Reading cpu_limit;                       // cpus that the container's quota allows
  Reading memory_limit;                    // bytes that the container may take
  Reading shm_size, shm_free;              // bytes of /dev/shm
  std::vector<std::string> acs_redirects;  // PCI bridges that send device-to-device traffic through the root (ACS)
  std::map<std::string, std::string> environment;  // settings that change how ranks talk or compute
};

struct RankPlace {
  int world_rank = 0, local_rank = 0, local_size = 1;
  int compute_threads = 0;
};

// `environment`: of the process, name=value; kept are the prefixes that matter (NCCL_, OMPI_MCA_, OMP_, CUDA_, ...).
HostFacts gather_host_facts(const SystemRoot& root, const RankPlace& place, const char* const* environment);

}  // namespace drivetrain

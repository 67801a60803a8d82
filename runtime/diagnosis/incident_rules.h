// Incidents that others had, as rules: when the facts of this job look like one of them, the report says so, with what
// helped then. Numbers are those of docs/diagnosis.md and of the fault matrix.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/diagnosis/device_facts.h"
#include "runtime/diagnosis/link_rules.h"
#include "runtime/diagnosis/verdict.h"

namespace drivetrain {

// What is known of one rank. Absent: unknown, and rules that need it stay silent.
struct RankFacts {
  int rank = 0;
  std::string host = {};
  std::optional<int> affinity_cpus = {}, threads = {};
  std::vector<int> cpu_numa_nodes = {};             // that its cores belong to
  std::optional<int> device_numa_node = {};         // of its device
  std::string device_pci = {}, monitored_pci = {};  // where it computes, and where its figures come from
  std::optional<int> contexts_on_device = {};       // processes with a context on its device
  int ranks_on_device = 1;
  std::optional<double> loss_scale = {};
  std::optional<double> documents_over_mean = {};  // documents of this rank over the mean of the ranks
  bool out_of_data = false;                        // left the loop although others go on
  std::optional<double> device_allocations_per_step = {}, device_reads_per_step = {};
  char process_state = 0;                         // as /proc/<pid>/stat has it: 'R', 'S', 'D', 'T'; 0: unknown
  std::optional<std::uint64_t> call_number = {};  // of the collective it is in or had last
  std::string call = {};                          // "dp all_reduce f32 4096"
};

struct IncidentFacts {
  std::vector<RankFacts> ranks = {};
  std::vector<Verdict> verdicts = {};
  std::vector<DeviceFacts> devices = {};  // by world rank
  std::vector<LinkFacts> links = {};
  bool moving = true;                 // steps go on
  bool peer_probe_failed = false;     // copying between devices hung or gave wrong bytes
  int acs_bridges = 0;                // PCI bridges that redirect device-to-device traffic
  bool iommu = false;                 // translating, not in pass-through
  bool p2p_disabled_by_env = false;   // NCCL_P2P_DISABLE=1
  std::string device_transport = {};  // between devices of different hosts: "rdma", "tcp"; "": one host or unknown
  bool device_tcp_inside_host = false;
  bool rdma_present = false;  // the host has RDMA ports
  bool rdma_usable = true;    // and this process may open them
  bool container = false;
  int numa_nodes = 1, ranks_per_host = 1;
  std::optional<double> shm_free_bytes = {}, shm_needed_bytes = {};
  std::optional<double> step_ms_first = {}, step_ms_last = {};  // medians of the first and last windows
  std::optional<double> clock_first_mhz = {}, clock_last_mhz = {}, temperature_first_c = {}, temperature_last_c = {};
  std::optional<double> checkpoint_s = {}, comm_timeout_s = {};
  std::optional<double> comm_share = {};        // exposed transfers, of the step
  std::optional<double> dp_exposed_share = {};  // exposed over all of the gradient reduction's time in flight
  int gradient_buckets = 0;
};

struct IncidentRule {
  int number = 0;
  const char* source;  // where it happened
  // The sentence when the facts match.
  std::optional<std::string> (*match)(const IncidentFacts&);
  const char* action;
};
std::span<const IncidentRule> incident_rules();  // by number

struct IncidentMatch {
  int number = 0;
  std::string source, sentence, action;
};
std::vector<IncidentMatch> matching_incidents(const IncidentFacts& facts);

}  // namespace drivetrain

#include <algorithm>
#include <array>

#include "runtime/diagnosis/incident_tables.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

using Facts = const IncidentFacts&;
using Match = std::optional<std::string>;

// Change points: beyond what data and drift do to a step, and a clock that boost jitter does not explain.
constexpr double kSlower = 1.3, kClockFell = 0.9;
// A creeping slowdown with heat.
constexpr double kCreep = 1.1, kWarmed = 10;
// All lanes up and yet a fifth: the fabric, not the load.
constexpr double kDeadLink = 0.2;

std::string between(const LinkFacts& l) {
  return l.a + " and " + l.b;
}
std::string rank(std::size_t r) {
  return "rank " + std::to_string(r);
}
template <class Condition>
const LinkFacts* link_where(Facts f, Condition&& condition) {
  const auto found = std::find_if(f.links.begin(), f.links.end(), condition);
  return found == f.links.end() ? nullptr : &*found;
}
template <class Condition>
const RankFacts* rank_where(Facts f, Condition&& condition) {
  const auto found = std::find_if(f.ranks.begin(), f.ranks.end(), condition);
  return found == f.ranks.end() ? nullptr : &*found;
}
bool thermal(const DeviceFacts& d) {
  return d.throttle.find("thermal") != std::string::npos;
}
bool slower_over_the_run(Facts f, double factor) {
  return f.step_ms_first && f.step_ms_last && *f.step_ms_last >= factor * *f.step_ms_first;
}
bool clock_fell(Facts f) {
  return f.clock_first_mhz && f.clock_last_mhz && *f.clock_last_mhz < kClockFell * *f.clock_first_mhz;
}
std::string step_change(Facts f) {
  return "the step went from " + in_ms(*f.step_ms_first) + " to " + in_ms(*f.step_ms_last);
}

const std::array kRules{
    IncidentRule{8, "NVIDIA/nccl#2079",
                 [](Facts f) -> Match {
                   if (!f.peer_probe_failed || f.acs_bridges == 0) return {};
                   return "copies between devices fail and " + std::to_string(f.acs_bridges) +
                          " PCI bridges have ACS on, which sends them through the root port";
                 },
                 "turn ACS off on the bridges (BIOS, or setpci <bridge> ECAP_ACS+6.w=0000)"},
    IncidentRule{9, "NVIDIA/nccl#257",
                 [](Facts f) -> Match {
                   if (!f.peer_probe_failed || !f.iommu) return {};
                   return "copies between devices fail and the IOMMU translates";
                 },
                 "boot with intel_iommu=off (amd_iommu=off) or iommu=pt"},
    IncidentRule{10, "nccl#667, nccl#631",
                 [](Facts f) -> Match {
                   if (!f.p2p_disabled_by_env) return {};
                   return "NCCL_P2P_DISABLE is set: devices talk through host memory";
                 },
                 "unset it once VT-d and ACS are off; it hides a hang at the price of bandwidth"},
    IncidentRule{11, "nccl#1309, nccl#1086",
                 [](Facts f) -> Match {
                   const LinkFacts* l =
                       link_where(f, [](const LinkFacts& x) { return x.peer_to_peer == false && x.shared_uplink; });
                   if (!l) return {};
                   return between(*l) +
                          " have no peer access and share one uplink: their traffic crosses it twice, " +
                          fixed(expected_gbps(*l, true), 1) + " GB/s at best";
                 },
                 "pair devices of different switches (CUDA_VISIBLE_DEVICES), or reduce in bf16 (precision.reduce)"},
    IncidentRule{12, "jan#183, nvtop#6",
                 [](Facts f) -> Match {
                   const LinkFacts* l = link_where(
                       f, [](const LinkFacts& x) { return x.under_load && x.gen > 0 && x.gen < x.max_gen; });
                   if (!l) return {};
                   return "the link of " + between(*l) + " runs at Gen" + std::to_string(l->gen) + " of Gen" +
                          std::to_string(l->max_gen) + " under load";
                 },
                 "reseat card and riser; set the slot's generation in the BIOS instead of auto"},
    IncidentRule{13, "club-3090#178",
                 [](Facts f) -> Match {
                   const LinkFacts* l =
                       link_where(f, [](const LinkFacts& x) { return x.width > 0 && x.width < x.max_width; });
                   if (!l) return {};
                   return "the link of " + between(*l) + " has " + std::to_string(l->width) + " of " +
                          std::to_string(l->max_width) + " lanes";
                 },
                 "move the card to a slot that is wired in full"},
    IncidentRule{14, "jingchaozhang.github.io thermal throttling",
                 [](Facts f) -> Match {
                   const auto hot = std::count_if(f.devices.begin(), f.devices.end(), thermal);
                   if (hot == 0 || hot == static_cast<std::ptrdiff_t>(f.devices.size())) return {};
                   const auto first = std::find_if(f.devices.begin(), f.devices.end(), thermal);
                   return "the device of " + rank(static_cast<std::size_t>(first - f.devices.begin())) +
                          " throttles for heat, its peers do not: every rank waits for it";
                 },
                 "mend its cooling; until then leave it out or lower the power limit"},
    IncidentRule{15, "matt.sh cloud GPU thermal throttling",
                 [](Facts f) -> Match {
                   if (!slower_over_the_run(f, kSlower) || !clock_fell(f)) return {};
                   return step_change(f) + " and the clock from " + fixed(*f.clock_first_mhz, 0) + " to " +
                          fixed(*f.clock_last_mhz, 0) + " MHz";
                 },
                 "cooling: ask for another machine, or cap the power so that the clock holds"},
    IncidentRule{16, "tensorflow#40042",
                 [](Facts f) -> Match {
                   if (!slower_over_the_run(f, kCreep) || clock_fell(f) || !f.temperature_first_c ||
                       !f.temperature_last_c || *f.temperature_last_c < *f.temperature_first_c + kWarmed)
                     return {};
                   return step_change(f) + " while the device warmed from " + fixed(*f.temperature_first_c, 0) +
                          " to " + fixed(*f.temperature_last_c, 0) + " C";
                 },
                 "check fans, dust and pads; memory heats before the core reports it"},
    IncidentRule{17, "engineering.fluidstack.io 0.3 % slower node",
                 [](Facts f) -> Match {
                   const LinkFacts* l = link_where(
                       f, [](const LinkFacts& x) { return x.medium == LinkMedium::kNvlink && x.lanes_up < x.lanes; });
                   if (!l) return {};
                   return std::to_string(l->lanes_up) + " of " + std::to_string(l->lanes) + " NVLink lanes between " +
                          between(*l) + " are up";
                 },
                 "reset the board; a lane that stays down is a repair"},
    IncidentRule{18, "azhpc-diagnostics#73, dstack#1167",
                 [](Facts f) -> Match {
                   const LinkFacts* l = link_where(f, [](const LinkFacts& x) {
                     return x.medium == LinkMedium::kNvlink && x.lanes > 0 && x.lanes_up == x.lanes &&
                            x.measured_gbps > 0 && x.measured_gbps < kDeadLink * expected_gbps(x, true);
                   });
                   if (!l) return {};
                   return "all NVLink lanes between " + between(*l) + " say they are up, yet they give " +
                          fixed(l->measured_gbps, 1) + " of " + fixed(expected_gbps(*l, true), 0) + " GB/s";
                 },
                 "restart the fabric manager; believe the measurement, not the status"},
    IncidentRule{19, "areal-project/AReaL#639",
                 [](Facts f) -> Match {
                   if (f.device_tcp_inside_host) return "devices of one host talk over TCP sockets";
                   if (f.device_transport != "tcp" || !f.rdma_present || !f.rdma_usable) return {};
                   return "devices of different hosts talk over TCP although there is RDMA";
                 },
                 "unset NCCL_IB_DISABLE, NCCL_P2P_DISABLE and NCCL_SHM_DISABLE; NCCL_DEBUG=INFO names the transport"},
    IncidentRule{20, "vllm#6610",
                 [](Facts f) -> Match {
                   if (f.device_transport != "tcp" || !f.container || !f.rdma_present || f.rdma_usable) return {};
                   return "the host has RDMA, but this container may not open it";
                 },
                 "start the container with --device=/dev/infiniband --ulimit memlock=-1 (or --privileged)"},
    IncidentRule{21, "nccl#644, horovod#95, ompi#12900, ompi#13009",
                 [](Facts f) -> Match {
                   const RankFacts* r = rank_where(f, [](const RankFacts& x) {
                     return x.affinity_cpus && x.threads && *x.affinity_cpus < *x.threads;
                   });
                   if (!r) return {};
                   return rank(static_cast<std::size_t>(r->rank)) + " has " + std::to_string(*r->threads) +
                          " threads bound to " + std::to_string(*r->affinity_cpus) +
                          " cores (mpirun binds to one core for up to two ranks)";
                 },
                 "mpirun --bind-to none, or --map-by numa"},
    IncidentRule{22, "open-mpi/ompi#11726",
                 [](Facts f) -> Match {
                   if (f.numa_nodes < 2) return {};
                   const RankFacts* r = rank_where(f, [](const RankFacts& x) {
                     return x.device_numa_node.value_or(-1) >= 0 && !x.cpu_numa_nodes.empty() &&
                            std::find(x.cpu_numa_nodes.begin(), x.cpu_numa_nodes.end(), *x.device_numa_node) ==
                                x.cpu_numa_nodes.end();
                   });
                   if (r)
                     return rank(static_cast<std::size_t>(r->rank)) + " runs on NUMA node " +
                            std::to_string(r->cpu_numa_nodes[0]) + ", its device hangs on node " +
                            std::to_string(*r->device_numa_node);
                   const bool alone = f.ranks_per_host > 1 && f.ranks.size() > 1 &&
                                      std::all_of(f.ranks.begin(), f.ranks.end(), [&](const RankFacts& x) {
                                        return x.cpu_numa_nodes.size() == 1 && x.host == f.ranks[0].host &&
                                               x.cpu_numa_nodes == f.ranks[0].cpu_numa_nodes;
                                      });
                   if (!alone) return {};
                   return "all ranks of the host are bound to NUMA node " +
                          std::to_string(f.ranks[0].cpu_numa_nodes[0]) + " of " + std::to_string(f.numa_nodes);
                 },
                 "mpirun --map-by numa, without -N"},
    IncidentRule{23, "sglang#11028, prime-rl#3234",
                 [](Facts f) -> Match {
                   const RankFacts* r = rank_where(f, [](const RankFacts& x) {
                     return !x.device_pci.empty() && !x.monitored_pci.empty() && x.device_pci != x.monitored_pci;
                   });
                   if (!r) return {};
                   return rank(static_cast<std::size_t>(r->rank)) + " computes on " + r->device_pci +
                          " but is bound and watched as " + r->monitored_pci + ": an NVML index is not a CUDA index";
                 },
                 "match devices by PCI address; CUDA_DEVICE_ORDER=PCI_BUS_ID"},
    IncidentRule{28, "torchtitan#853, nccl#342, nccl#290",
                 [](Facts f) -> Match {
                   if (!f.shm_free_bytes || !f.shm_needed_bytes || *f.shm_free_bytes >= *f.shm_needed_bytes)
                     return {};
                   return "/dev/shm has " + fixed(*f.shm_free_bytes / 1048576, 0) + " MiB free, ranks need " +
                          fixed(*f.shm_needed_bytes / 1048576, 0) + " MiB";
                 },
                 "start the container with --shm-size=8g (or --ipc=host)"},
    IncidentRule{29, "pytorch/examples#1078, apex#222",
                 [](Facts f) -> Match {
                   const RankFacts* r = rank_where(
                       f, [](const RankFacts& x) { return x.contexts_on_device.value_or(0) > x.ranks_on_device; });
                   if (!r) return {};
                   return "the device of " + rank(static_cast<std::size_t>(r->rank)) + " has contexts of " +
                          std::to_string(*r->contexts_on_device) + " processes; " +
                          std::to_string(r->ranks_on_device) + " belong there";
                 },
                 "set the device before the first call to it; end processes of earlier runs"},
};

}  // namespace

std::span<const IncidentRule> incidents_of_the_machine() {
  return kRules;
}

}  // namespace drivetrain

// What a rank's data travels over: kind, speed and health of each link of this host, behind one interface with three
// providers (NVML, Linux /sys, a script). Says nothing about what a link achieved: that is measured by the ledger.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drivetrain {

enum class LinkKind { kNvlink, kPcie, kSharedMemory, kTcp };
const char* name(LinkKind kind);  // "nvlink", "pcie", "shared memory", "tcp"
std::optional<LinkKind> link_kind(const std::string& name);

struct Link {
  LinkKind kind = LinkKind::kPcie;
  std::string name{};    // unique in a report: "0000:17:00.0", "0000:17:00.0 nvlink 3", "eth0", "/dev/shm"
  std::string device{};  // PCI address of the end on this side; "" for none
  std::string peer{};    // PCI address of the other end, "switch", or "" for host memory and networks
  std::string driver{};  // network interfaces; "virtual" without hardware
  bool up = true;
  double gb_per_s = 0, max_gb_per_s = 0;  // 1e9 bytes a second and direction, nominal; 0: unknown
  int gen = 0, width = 0;                 // PCIe as trained now
  int max_gen = 0, max_width = 0;         // PCIe as both ends could
  int numa_node = -1;                     // -1: unknown or one node
  std::optional<std::int64_t> replays{};  // since the driver was loaded
  std::optional<std::int64_t> crc_errors{};
  std::optional<std::int64_t> recoveries{};
};

// How two devices of this host reach each other.
struct DevicePair {
  std::string a, b;                       // PCI addresses
  std::string path;                       // "PIX", "PXB", "PHB", "NODE", "SYS" as nvidia-smi topo says
  int nvlinks = 0;                        // active ones between the two
  std::optional<bool> peer_to_peer = {};  // reads of each other's memory work
};

struct LinkReport {
  std::vector<Link> links;
  std::vector<DevicePair> pairs;
};

class LinkInspector {
 public:
  virtual ~LinkInspector() = default;
  // Reads the state anew. What cannot be read is left out; throws only for a script that is wrong (kConfig).
  virtual LinkReport inspect() = 0;
};

// Bytes a second and direction of a PCIe link after its line code, in 1e9: gen 1-2 8b/10b, gen 3-5 128b/130b, gen 6
// 242/256 flits (PCI Express Base Specification 6.0). 0 for an unknown generation.
double pcie_gb_per_s(int gen, int width);
// 16 GT/s -> 4. 0 when no generation has this rate.
int pcie_gen(double gigatransfers);

// One sentence per fault that the state alone shows. Idle devices lower their PCIe generation by design, so speed is
// judged only of a report taken `under_load`; width, links that are down, and error counters that grew since `before`
// always are. A device is expected to have as many NVLinks up as the best device beside it.
std::vector<std::string> link_faults(const LinkReport& report, const LinkReport& before, bool under_load);

}  // namespace drivetrain

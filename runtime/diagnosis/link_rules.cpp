#include "runtime/diagnosis/link_rules.h"

#include <algorithm>
#include <array>

#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// Shares of the nominal rate that large copies reach: NVLink and PCIe lose to packet headers (PCIe: 24 to 26 of 31.5 GB/s
// on gen 4 x16), TCP to headers and the host, shared memory copies twice.
constexpr double kNvlinkShare = 0.8, kPcieShare = 0.78, kTcpShare = 0.9, kSharedMemoryShare = 0.5;
// Calibration and run differ by other traffic, model and run by more.
constexpr double kOfCalibration = 0.7, kOfModel = 0.5;

// Per lane and direction, after line coding (PCI Express specification 6.0, table of raw rates).
double pcie_lane_gbps(int gen) {
  constexpr std::array<double, 7> kPerLane{0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
  return gen >= 1 && gen < static_cast<int>(kPerLane.size()) ? kPerLane[static_cast<std::size_t>(gen)] : 0;
}

std::string gbps(double value) {
  return fixed(value, 1);
}
std::string pcie(int gen, int width) {
  return "Gen" + std::to_string(gen) + " x" + std::to_string(width);
}

// What the state alone explains, "" for nothing.
std::string state_fault(const LinkFacts& l) {
  if (l.medium == LinkMedium::kNvlink && l.lanes_up < l.lanes)
    return std::to_string(l.lanes_up) + " of " + std::to_string(l.lanes) + " NVLink lanes are up";
  const bool narrow = l.width > 0 && l.width < l.max_width;
  const bool slow = l.under_load && l.gen > 0 && l.gen < l.max_gen;
  if (l.medium == LinkMedium::kPcie && (narrow || slow))
    return "link trained " + pcie(l.gen, l.width) + " (max " + pcie(l.max_gen, l.max_width) + ")";
  return "";
}

std::string action_of(const LinkFacts& l, const std::string& fault) {
  switch (l.medium) {
    case LinkMedium::kNvlink:
      return fault.empty() ? "check nvidia-smi nvlink -e and the fabric manager"
                           : "reset or reseat the board; a lane that stays down is a repair";
    case LinkMedium::kPcie:
      if (!fault.empty())
        return "reseat the card, check riser and slot wiring, and the slot's generation in the BIOS";
      if (l.peer_to_peer == false)
        return "check NCCL_P2P_DISABLE, ACS and IOMMU: without peer access traffic goes through the host";
      return "check what else uses its switch and the NUMA node of the host memory";
    case LinkMedium::kSharedMemory:
      return "check that both ranks' cores and memory are on one NUMA node (--map-by numa) and what else fills "
             "memory bandwidth";
    case LinkMedium::kTcp:
      break;
  }
  return "check the interface that ranks use (its speed, drops, other traffic); keep tp inside a host";
}

}  // namespace

const char* name(LinkMedium medium) {
  switch (medium) {
    case LinkMedium::kNvlink:
      return "NVLink";
    case LinkMedium::kPcie:
      return "PCIe";
    case LinkMedium::kSharedMemory:
      return "shared memory";
    case LinkMedium::kTcp:
      break;
  }
  return "TCP";
}

double expected_gbps(const LinkFacts& l, bool healthy) {
  switch (l.medium) {
    case LinkMedium::kNvlink:
      return kNvlinkShare * (healthy ? l.lanes : l.lanes_up) * l.lane_gbps;
    case LinkMedium::kPcie: {
      // An idle link's generation says nothing; take what it can do.
      const int gen = healthy || !l.under_load ? std::max(l.gen, l.max_gen) : l.gen;
      const int width = healthy ? std::max(l.width, l.max_width) : l.width;
      double rate = kPcieShare * pcie_lane_gbps(gen) * width;
      if (l.peer_to_peer == false) {
        rate *= kSharedMemoryShare;        // up into host memory and down again
        if (l.shared_uplink) rate *= 0.5;  // both ways over the one uplink of the switch (nccl#1309)
      }
      return rate;
    }
    case LinkMedium::kSharedMemory:
      return kSharedMemoryShare * l.memory_gbps;
    case LinkMedium::kTcp:
      break;
  }
  return kTcpShare * l.nominal_gbps;
}

std::vector<LinkFinding> link_findings(std::span<const LinkFacts> links) {
  std::vector<LinkFinding> found;
  for (const LinkFacts& l : links) {
    const std::string fault = state_fault(l);
    const double model = expected_gbps(l, true);
    const bool below_calibration = l.measured_gbps > 0 && l.measured_gbps < kOfCalibration * l.calibrated_gbps;
    const bool below_model = l.measured_gbps > 0 && l.measured_gbps < kOfModel * model;
    if (fault.empty() && !below_calibration && !below_model && l.errors == 0) continue;
    LinkFinding f{.a = l.a, .b = l.b, .sentence = l.a + " - " + l.b + " (" + name(l.medium) + ")", .action = {}};
    f.measured_gbps = l.measured_gbps;
    // The calibration would hide a fault that was there from the start.
    f.expected_gbps = std::max(l.calibrated_gbps, below_model || !fault.empty() ? model : 0);
    if (l.measured_gbps > 0 && f.expected_gbps > 0)
      f.sentence += " ran at " + gbps(l.measured_gbps) + " of " + gbps(f.expected_gbps) + " GB/s expected";
    if (below_calibration && l.calibrated_gbps > 0) f.sentence += ", " + gbps(l.calibrated_gbps) + " at start-up";
    if (!fault.empty()) f.sentence += ": " + fault;
    if (l.errors > 0) f.sentence += "; " + std::to_string(l.errors) + " new link errors";
    f.action = action_of(l, fault);
    found.push_back(std::move(f));
  }
  const auto share = [](const LinkFinding& f) { return f.expected_gbps > 0 ? f.measured_gbps / f.expected_gbps : 1; };
  std::stable_sort(found.begin(), found.end(),
                   [&](const LinkFinding& a, const LinkFinding& b) { return share(a) < share(b); });
  return found;
}

}  // namespace drivetrain

#include "runtime/monitor/nvml.h"
#include "runtime/monitor/nvml_ask.h"
#include "runtime/monitor/sysfs_links.h"

namespace drivetrain {
namespace {

// nvmlGpuTopologyLevel_t in the words of `nvidia-smi topo -m`.
const char* path_name(int level) {
  switch (level) {
    case 10:
      return "PIX";
    case 20:
      return "PXB";
    case 30:
      return "PHB";
    case 40:
      return "NODE";
    case 50:
      return "SYS";
    default:
      return "";
  }
}

std::optional<std::int64_t> counter(std::optional<unsigned long long> value) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace

Link Nvml::pcie_link(std::size_t device) const {
  const nvml::Device handle = handles_[device];
  const auto whole = [&](int (*function)(nvml::Device, unsigned*)) {
    return static_cast<int>(nvml::ask<unsigned>(function, handle).value_or(0));
  };
  Link link;
  link.kind = LinkKind::kPcie;
  link.name = link.device = ids_[device].pci;
  link.driver = "nvidia";
  link.gen = whole(api_.pcie_gen);
  link.width = whole(api_.pcie_width);
  link.max_gen = whole(api_.pcie_max_gen);
  link.max_width = whole(api_.pcie_max_width);
  link.gb_per_s = pcie_gb_per_s(link.gen, link.width);
  link.max_gb_per_s = pcie_gb_per_s(link.max_gen, link.max_width);
  link.numa_node = numa_node_of(root_, ids_[device].pci);
  if (const auto replays = nvml::ask<unsigned>(api_.pcie_replays, handle)) link.replays = *replays;
  return link;
}

void Nvml::add_nvlinks(std::size_t device, std::vector<Link>& links) const {
  const nvml::Device handle = handles_[device];
  for (unsigned i = 0; i < nvml::kMostNvLinks; ++i) {
    const auto state = nvml::ask<int>(api_.nvlink_state, handle, i);
    if (!state) continue;  // this board has no such link
    Link link;
    link.kind = LinkKind::kNvlink;
    link.device = ids_[device].pci;
    link.name = link.device + " nvlink " + std::to_string(i);
    link.driver = "nvidia";
    link.up = *state != 0;
    link.numa_node = numa_node_of(root_, link.device);
    if (nvml::ask<int>(api_.nvlink_peer_type, handle, i) == nvml::kRemoteSwitch)
      link.peer = "switch";
    else if (const auto peer = nvml::ask<nvml::PciInfo>(api_.nvlink_peer, handle, i))
      link.peer = pci_address(peer->bus_id);
    nvml::FieldValue speed{};
    speed.field = nvml::kFieldNvLinkSpeed;
    speed.scope = i;
    if (link.up && api_.fields && api_.fields(handle, 1, &speed) == nvml::kSuccess && speed.result == nvml::kSuccess)
      link.gb_per_s = link.max_gb_per_s = speed.value.whole * 1e-3;
    const auto errors = [&](int kind) {
      return counter(nvml::ask<unsigned long long>(api_.nvlink_errors, handle, i, kind));
    };
    link.replays = errors(nvml::kReplay);
    link.recoveries = errors(nvml::kRecovery);
    link.crc_errors = errors(nvml::kCrcFlit);
    links.push_back(std::move(link));
  }
}

DevicePair Nvml::pair_of(std::size_t a, std::size_t b, const std::vector<Link>& links) const {
  DevicePair pair;
  pair.a = ids_[a].pci;
  pair.b = ids_[b].pci;
  pair.path = path_name(nvml::ask<int>(api_.common_ancestor, handles_[a], handles_[b]).value_or(0));
  for (const Link& link : links)
    if (link.kind == LinkKind::kNvlink && link.up && link.device == pair.a &&
        (link.peer == pair.b || link.peer == "switch"))
      ++pair.nvlinks;
  if (const auto status = nvml::ask<int>(api_.peer_status, handles_[a], handles_[b], int{nvml::kPeerRead}))
    pair.peer_to_peer = *status == nvml::kPeerOk;
  return pair;
}

LinkReport Nvml::inspect() {
  LinkReport report;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    report.links.push_back(pcie_link(i));
    add_nvlinks(i, report.links);
  }
  for (std::size_t a = 0; a < ids_.size(); ++a)
    for (std::size_t b = a + 1; b < ids_.size(); ++b) report.pairs.push_back(pair_of(a, b, report.links));
  return report;
}

}  // namespace drivetrain

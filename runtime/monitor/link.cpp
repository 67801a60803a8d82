#include "runtime/monitor/link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace drivetrain {
namespace {

struct PcieRate {
  double gigatransfers, efficiency;
};
constexpr std::array<PcieRate, 6> kPcie{
    {{2.5, 0.8}, {5, 0.8}, {8, 128.0 / 130}, {16, 128.0 / 130}, {32, 128.0 / 130}, {64, 242.0 / 256}}};

constexpr std::array<const char*, 4> kKinds{"nvlink", "pcie", "shared memory", "tcp"};

std::string pcie_text(int gen, int width) {
  return "gen " + std::to_string(gen) + " x" + std::to_string(width);
}

void add_pcie_faults(const Link& link, bool under_load, std::vector<std::string>& faults) {
  const bool narrow = link.width > 0 && link.width < link.max_width;
  const bool slow = under_load && link.gen > 0 && link.gen < link.max_gen;
  if (narrow || slow)
    faults.push_back(link.name + ": PCIe trained at " + pcie_text(link.gen, link.width) + ", could do " +
                     pcie_text(link.max_gen, link.max_width) + ": check slot, riser and BIOS");
}

void add_counter_faults(const Link& link, const Link& before, std::vector<std::string>& faults) {
  const auto grew = [&](const std::optional<std::int64_t>& now, const std::optional<std::int64_t>& then,
                        const char* what) {
    if (now && then && *now > *then)
      faults.push_back(link.name + ": " + std::to_string(*now - *then) + " " + what + " since the run began");
  };
  grew(link.replays, before.replays, "replays");
  grew(link.crc_errors, before.crc_errors, "CRC errors");
  grew(link.recoveries, before.recoveries, "link recoveries");
}

void add_nvlink_faults(const LinkReport& report, std::vector<std::string>& faults) {
  std::map<std::string, int> up;
  for (const Link& link : report.links)
    if (link.kind == LinkKind::kNvlink) up[link.device] += link.up ? 1 : 0;
  int most = 0;
  for (const auto& [device, count] : up) most = std::max(most, count);
  for (const auto& [device, count] : up)
    if (count < most)
      faults.push_back(device + ": " + std::to_string(count) + " NVLinks are up, its neighbours have " +
                       std::to_string(most));
}

}  // namespace

const char* name(LinkKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<LinkKind> link_kind(const std::string& name) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) return std::nullopt;
  return static_cast<LinkKind>(found - kKinds.begin());
}

double pcie_gb_per_s(int gen, int width) {
  if (gen < 1 || gen > static_cast<int>(kPcie.size())) return 0;
  const PcieRate& rate = kPcie[static_cast<std::size_t>(gen - 1)];
  return rate.gigatransfers * rate.efficiency * width / 8;
}

int pcie_gen(double gigatransfers) {
  for (std::size_t i = 0; i < kPcie.size(); ++i)
    if (std::abs(kPcie[i].gigatransfers - gigatransfers) < 0.1) return static_cast<int>(i) + 1;
  return 0;
}

std::vector<std::string> link_faults(const LinkReport& report, const LinkReport& before, bool under_load) {
  std::vector<std::string> faults;
  for (const Link& link : report.links) {
    if (link.kind == LinkKind::kPcie) add_pcie_faults(link, under_load, faults);
    const auto then = std::find_if(before.links.begin(), before.links.end(),
                                   [&](const Link& old) { return old.name == link.name; });
    if (then == before.links.end()) continue;
    if (then->up && !link.up) faults.push_back(link.name + ": went down during the run");
    add_counter_faults(link, *then, faults);
  }
  add_nvlink_faults(report, faults);
  return faults;
}

}  // namespace drivetrain

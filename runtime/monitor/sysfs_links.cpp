#include "runtime/monitor/sysfs_links.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace drivetrain {
namespace {

const std::string kPciDevices = "sys/bus/pci/devices/";
const std::string kInterfaces = "sys/class/net/";

// "16.0 GT/s PCIe" -> 4; older kernels write "8 GT/s".
int gen_of(const std::optional<std::string>& speed) {
  return speed ? pcie_gen(std::strtod(speed->c_str(), nullptr)) : 0;
}

int width_of(const SystemRoot& root, const std::string& file) {
  const std::int64_t width = root.integer(file).value_or(0);
  return width > 0 && width <= 32 ? static_cast<int>(width) : 0;  // 255: the device cannot tell
}

// The value behind "TOTAL_ERR_COR" in a device's corrected PCIe errors (Documentation/ABI/testing/sysfs-bus-pci-devices-
// aer_stats): bad packets that were sent again.
std::optional<std::int64_t> corrected_errors(const SystemRoot& root, const std::string& device) {
  const auto table = root.text(device + "/aer_dev_correctable");
  if (!table) return std::nullopt;
  for (const std::string_view line : lines_of(*table)) {
    const auto words = words_of(line);
    if (words.size() == 2 && words[0] == "TOTAL_ERR_COR") return parse_integer(words[1]);
  }
  return std::nullopt;
}

std::optional<Link> pcie_link(const SystemRoot& root, const std::string& address) {
  const std::string device = kPciDevices + address;
  Link link;
  link.kind = LinkKind::kPcie;
  link.name = link.device = address;
  link.gen = gen_of(root.text(device + "/current_link_speed"));
  link.width = width_of(root, device + "/current_link_width");
  link.max_gen = gen_of(root.text(device + "/max_link_speed"));
  link.max_width = width_of(root, device + "/max_link_width");
  if (link.width == 0 && link.max_width == 0) return std::nullopt;  // not on a PCIe link: emulated or on the package
  link.gb_per_s = pcie_gb_per_s(link.gen, link.width);
  link.max_gb_per_s = pcie_gb_per_s(link.max_gen, link.max_width);
  link.numa_node = numa_node_of(root, address);
  link.driver = root.link_name(device + "/driver").value_or("");
  link.replays = corrected_errors(root, device);
  return link;
}

// PCI base classes (PCI Code and ID Assignment Specification): 02 network, 03 display, 12 processing accelerators.
bool carries_training(const std::string& pci_class) {
  return pci_class.starts_with("0x02") || pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

Link interface_link(const SystemRoot& root, const std::string& name) {
  const std::string folder = kInterfaces + name;
  Link link;
  link.kind = LinkKind::kTcp;
  link.name = name;
  link.driver = root.link_name(folder + "/device/driver").value_or("virtual");
  // "unknown" is what tunnels and some virtual cards say while they work.
  const std::string state = root.text(folder + "/operstate").value_or("unknown");
  link.up = state == "up" || state == "unknown";
  const std::int64_t megabits = root.integer(folder + "/speed").value_or(0);  // -1: no carrier or no notion of speed
  if (megabits > 0) link.gb_per_s = link.max_gb_per_s = static_cast<double>(megabits) * 1e-3 / 8;
  link.numa_node = static_cast<int>(root.integer(folder + "/device/numa_node").value_or(-1));
  link.device = root.link_name(folder + "/device").value_or("");
  link.crc_errors = root.integer(folder + "/statistics/rx_crc_errors");
  return link;
}

class SysfsLinks final : public LinkInspector {
 public:
  explicit SysfsLinks(const SystemRoot& root) : root_(root) {}

  LinkReport inspect() override {
    LinkReport report;
    for (const std::string& address : root_.entries("sys/bus/pci/devices")) {
      if (!carries_training(root_.text(kPciDevices + address + "/class").value_or(""))) continue;
      if (auto link = pcie_link(root_, address)) report.links.push_back(std::move(*link));
    }
    for (const std::string& name : root_.entries("sys/class/net"))
      if (name != "lo") report.links.push_back(interface_link(root_, name));
    Link memory;
    memory.kind = LinkKind::kSharedMemory;
    memory.name = "/dev/shm";
    memory.up = std::filesystem::is_directory(root_ / "dev/shm");
    report.links.push_back(memory);
    return report;
  }

 private:
  SystemRoot root_;
};

}  // namespace

std::unique_ptr<LinkInspector> sysfs_links(const SystemRoot& root) {
  return std::make_unique<SysfsLinks>(root);
}

int numa_node_of(const SystemRoot& root, const std::string& address) {
  return static_cast<int>(root.integer(kPciDevices + pci_address(address) + "/numa_node").value_or(-1));
}

std::string pci_address(const std::string& bus_id) {
  std::string text = bus_id;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t domain = text.find(':');
  if (domain == 8 && text.starts_with("0000")) text.erase(0, 4);
  return text;
}

}  // namespace drivetrain

// Links as Linux shows them in /sys: accelerators and network cards on PCIe, network interfaces, shared memory.
#pragma once
#include <memory>

#include "runtime/monitor/link.h"
#include "runtime/monitor/system_root.h"

namespace drivetrain {

std::unique_ptr<LinkInspector> sysfs_links(const SystemRoot& root);

// NUMA node of a PCI device, -1 when unknown. `address` as NVML or /sys write it; the domain may have 4 or 8 digits.
int numa_node_of(const SystemRoot& root, const std::string& address);
// "00000000:17:00.0" (NVML) -> "0000:17:00.0" (/sys), lower case.
std::string pci_address(const std::string& bus_id);

}  // namespace drivetrain

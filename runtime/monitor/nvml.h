// NVML loaded at run time, and the devices of it that this process may use. Everything but finding the devices is
// optional: an older driver or a board without a sensor leaves a gap, not an error.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/monitor/device_sample.h"
#include "runtime/monitor/link.h"
#include "runtime/monitor/nvml_abi.h"
#include "runtime/monitor/system_root.h"

namespace drivetrain {

struct DeviceId {
  std::string pci;   // as /sys writes it: "0000:17:00.0"; the one identity that CUDA, NVML and /sys share
  std::string uuid;  // "GPU-..."
  std::string name;  // "NVIDIA H200"
};

// Which of `all` (in PCI order) CUDA_VISIBLE_DEVICES lets a process see, in its order, by the rules of the CUDA
// programming guide: indices or prefixes of UUIDs, and nothing from the first entry that names no device. Indices count
// in PCI order, as CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID and among equal devices; in a host of unlike devices name
// UUIDs. "MIG-GPU-<uuid>/..." stands for its board; "MIG-<uuid>" names no board and cannot be matched. Null: all.
std::vector<std::size_t> visible_devices(const std::vector<DeviceId>& all, const char* cuda_visible_devices);

class Nvml final : public LinkInspector, public DeviceSource {
 public:
  // Null, and `why` in words, where there is no driver, no device, or a function that is needed is missing.
  static std::unique_ptr<Nvml> open(const std::string& library, const char* cuda_visible_devices,
                                    const SystemRoot& root, std::string& why);
  ~Nvml() override;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  LinkReport inspect() override;
  std::vector<DeviceSample> sample() override;
  const std::vector<DeviceId>& devices() const { return ids_; }

 private:
  explicit Nvml(const SystemRoot& root) : root_(root) {}
  bool load(const std::string& library, std::string& why);
  bool find_devices(const char* cuda_visible_devices, std::string& why);
  void add_nvlinks(std::size_t device, std::vector<Link>& links) const;
  Link pcie_link(std::size_t device) const;
  DevicePair pair_of(std::size_t a, std::size_t b, const std::vector<Link>& links) const;
  void read_events();

  SystemRoot root_;
  void* library_ = nullptr;
  bool initialised_ = false;
  nvml::Api api_{};
  std::vector<nvml::Device> handles_;
  std::vector<DeviceId> ids_;
  std::vector<std::optional<double>> last_xid_;
  nvml::EventSet events_ = nullptr;
};

}  // namespace drivetrain

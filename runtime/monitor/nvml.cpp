#include "runtime/monitor/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/monitor/sysfs_links.h"

namespace drivetrain {
namespace {

// Fills one entry point; false when the library has none of this name.
template <class Function>
bool bind(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// The first needed function that is missing, or null.
const char* bind_all(void* library, nvml::Api& api) {
#define NEEDED(member, symbol) \
  if (!bind(library, api.member, symbol)) return symbol
  NEEDED(init, "nvmlInit_v2");
  NEEDED(shutdown, "nvmlShutdown");
  NEEDED(error_text, "nvmlErrorString");
  NEEDED(count, "nvmlDeviceGetCount_v2");
  NEEDED(by_index, "nvmlDeviceGetHandleByIndex_v2");
  NEEDED(pci, "nvmlDeviceGetPciInfo_v3");
  NEEDED(uuid, "nvmlDeviceGetUUID");
  NEEDED(device_name, "nvmlDeviceGetName");
#undef NEEDED
  bind(library, api.utilization, "nvmlDeviceGetUtilizationRates");
  bind(library, api.memory, "nvmlDeviceGetMemoryInfo");
  bind(library, api.clock, "nvmlDeviceGetClockInfo");
  bind(library, api.max_clock, "nvmlDeviceGetMaxClockInfo");
  bind(library, api.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  bind(library, api.power, "nvmlDeviceGetPowerUsage");
  bind(library, api.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind(library, api.temperature, "nvmlDeviceGetTemperature");
  bind(library, api.ecc, "nvmlDeviceGetTotalEccErrors");
  bind(library, api.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  bind(library, api.pcie_gen, "nvmlDeviceGetCurrPcieLinkGeneration");
  bind(library, api.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  bind(library, api.pcie_max_gen, "nvmlDeviceGetMaxPcieLinkGeneration");
  bind(library, api.pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth");
  bind(library, api.pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  bind(library, api.nvlink_state, "nvmlDeviceGetNvLinkState");
  bind(library, api.nvlink_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  bind(library, api.nvlink_peer_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  bind(library, api.nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter");
  bind(library, api.fields, "nvmlDeviceGetFieldValues");
  bind(library, api.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  bind(library, api.peer_status, "nvmlDeviceGetP2PStatus");
  bind(library, api.event_set, "nvmlEventSetCreate");
  bind(library, api.event_register, "nvmlDeviceRegisterEvents");
  bind(library, api.event_wait, "nvmlEventSetWait_v2");
  bind(library, api.event_free, "nvmlEventSetFree");
  return nullptr;
}

std::optional<std::size_t> device_of_entry(const std::vector<DeviceId>& all, std::string_view entry) {
  if (const auto index = parse_integer(entry)) {
    if (*index < 0 || *index >= static_cast<std::int64_t>(all.size())) return std::nullopt;
    return static_cast<std::size_t>(*index);
  }
  if (entry.starts_with("MIG-GPU-")) entry = entry.substr(4, entry.find('/') - 4);
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!entry.starts_with("GPU-") || !std::string_view(all[i].uuid).starts_with(entry)) continue;
    if (found) return std::nullopt;  // two devices share the prefix
    found = i;
  }
  return found;
}

}  // namespace

std::vector<std::size_t> visible_devices(const std::vector<DeviceId>& all, const char* cuda_visible_devices) {
  std::vector<std::size_t> visible;
  if (!cuda_visible_devices) {
    for (std::size_t i = 0; i < all.size(); ++i) visible.push_back(i);
    return visible;
  }
  std::string_view rest = cuda_visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const auto words = words_of(rest.substr(0, comma));
    const auto device = words.size() == 1 ? device_of_entry(all, words[0]) : std::nullopt;
    if (!device) break;
    visible.push_back(*device);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return visible;
}

std::unique_ptr<Nvml> Nvml::open(const std::string& library, const char* cuda_visible_devices, const SystemRoot& root,
                                 std::string& why) {
  std::unique_ptr<Nvml> nvml(new Nvml(root));
  if (!nvml->load(library, why) || !nvml->find_devices(cuda_visible_devices, why)) return nullptr;
  return nvml;
}

bool Nvml::load(const std::string& library, std::string& why) {
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* reason = dlerror();
    why = reason ? reason : library + " cannot be loaded";
    return false;
  }
  if (const char* missing = bind_all(library_, api_)) {
    why = library + " has no " + missing + ": the driver is too old";
    return false;
  }
  const int result = api_.init();
  initialised_ = result == nvml::kSuccess;
  if (!initialised_) why = library + ": " + api_.error_text(result);
  return initialised_;
}

bool Nvml::find_devices(const char* cuda_visible_devices, std::string& why) {
  unsigned count = 0;
  if (const int result = api_.count(&count); result != nvml::kSuccess) {
    why = std::string("NVML cannot count devices: ") + api_.error_text(result);
    return false;
  }
  std::vector<std::pair<DeviceId, nvml::Device>> all;
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device handle = nullptr;
    nvml::PciInfo pci{};
    if (api_.by_index(i, &handle) != nvml::kSuccess || api_.pci(handle, &pci) != nvml::kSuccess) continue;
    std::array<char, nvml::kTextBytes> uuid{}, name{};
    api_.uuid(handle, uuid.data(), nvml::kTextBytes - 1);
    api_.device_name(handle, name.data(), nvml::kTextBytes - 1);
    all.push_back({{pci_address(pci.bus_id), uuid.data(), name.data()}, handle});
  }
  // NVML promises no order of its own.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.pci < b.first.pci; });
  std::vector<DeviceId> ids;
  for (const auto& [id, handle] : all) ids.push_back(id);
  for (const std::size_t i : visible_devices(ids, cuda_visible_devices)) {
    handles_.push_back(all[i].second);
    ids_.push_back(ids[i]);
  }
  last_xid_.resize(ids_.size());
  if (ids_.empty()) why = "NVML shows no device that CUDA_VISIBLE_DEVICES allows";
  return !ids_.empty();
}

Nvml::~Nvml() {
  if (events_ && api_.event_free) api_.event_free(events_);
  if (initialised_) api_.shutdown();
  if (library_) dlclose(library_);
}

}  // namespace drivetrain

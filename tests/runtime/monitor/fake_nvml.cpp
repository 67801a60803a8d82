// A libnvidia-ml.so.1 that answers from the text file $FAKE_NVML_SCRIPT: lines "KEY VALUE", a device's keys begin with
// its index ("0.power 91000"). A key that is absent is "not supported"; the value "error N" returns N. Built three times:
// whole, without what is optional (FAKE_NVML_BARE), and without a function that is needed (FAKE_NVML_OLD).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "runtime/monitor/nvml_abi.h"

using namespace drivetrain::nvml;

namespace {

std::map<std::string, std::string> script;

void read_script() {
  script.clear();
  const char* file = std::getenv("FAKE_NVML_SCRIPT");
  std::ifstream in(file ? file : "");
  std::string key, value;
  while (in >> key && std::getline(in >> std::ws, value)) script[key] = value;
}

// The text of a key and the code to return.
int find(const std::string& key, std::string& text) {
  const auto found = script.find(key);
  if (found == script.end()) return kNotSupported;
  text = found->second;
  return text.starts_with("error ") ? std::atoi(text.c_str() + 6) : int{kSuccess};
}

std::string of_device(Device device, const std::string& key) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(device) - 1) + "." + key;
}

template <class T>
int answer(const std::string& key, T* out) {
  std::string text;
  const int code = find(key, text);
  if (code == kSuccess) *out = static_cast<T>(std::strtoull(text.c_str(), nullptr, 0));
  return code;
}

int answer_text(const std::string& key, char* out, unsigned size) {
  std::string text;
  const int code = find(key, text);
  if (code == kSuccess) std::snprintf(out, size, "%s", text.c_str());
  return code;
}

[[maybe_unused]] std::string pair_key(Device a, Device b, const char* what) {
  return of_device(a, of_device(b, what));
}

[[maybe_unused]] std::string nvlink_key(Device device, unsigned link, const std::string& what) {
  return of_device(device, "nvlink." + std::to_string(link) + "." + what);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  read_script();
  std::string text;
  const int code = find("init", text);
  return code == kNotSupported ? int{kSuccess} : code;
}
int nvmlShutdown() {
  if (const char* file = std::getenv("FAKE_NVML_CLOSED")) std::ofstream(file) << "closed\n";
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "some error";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  return answer("count", count);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(static_cast<std::uintptr_t>(index) + 1);
  std::string text;
  return find(std::to_string(index) + ".pci", text);
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return answer_text(of_device(device, "pci"), pci->bus_id, sizeof pci->bus_id);
}
#endif
int nvmlDeviceGetUUID(Device device, char* out, unsigned size) {
  return answer_text(of_device(device, "uuid"), out, size);
}
int nvmlDeviceGetName(Device device, char* out, unsigned size) {
  return answer_text(of_device(device, "name"), out, size);
}

#ifndef FAKE_NVML_BARE
int nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  const int code = answer(of_device(device, "utilization"), &out->gpu);
  if (code == kSuccess) answer(of_device(device, "memory_utilization"), &out->memory);
  return code;
}
int nvmlDeviceGetMemoryInfo(Device device, Memory* out) {
  const int code = answer(of_device(device, "memory_total"), &out->total);
  if (code == kSuccess) answer(of_device(device, "memory_used"), &out->used);
  return code;
}
int nvmlDeviceGetClockInfo(Device device, int clock, unsigned* out) {
  return answer(of_device(device, clock == kClockSm ? "sm" : clock == kClockMemory ? "memory_clock" : "?"), out);
}
int nvmlDeviceGetMaxClockInfo(Device device, int clock, unsigned* out) {
  return answer(of_device(device, clock == kClockSm ? "sm_max" : "?"), out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* out) {
  return answer(of_device(device, "throttle"), out);
}
int nvmlDeviceGetPowerUsage(Device device, unsigned* out) {
  return answer(of_device(device, "power"), out);
}
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* out) {
  return answer(of_device(device, "power_limit"), out);
}
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned* out) {
  return answer(of_device(device, sensor == kTemperatureGpu ? "temperature" : "?"), out);
}
int nvmlDeviceGetTotalEccErrors(Device device, int error, int counter, unsigned long long* out) {
  const std::string kind = error == kCorrected ? "ecc_corrected" : "ecc_uncorrected";
  return answer(of_device(device, counter == kVolatile ? kind : "?"), out);
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, void*) {
  unsigned there = 0;
  const int code = answer(of_device(device, "processes"), &there);
  const int result = code == kSuccess && there > *count ? int{kInsufficientSize} : code;
  *count = there;
  return result;
}
int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* out) {
  return answer(of_device(device, "gen"), out);
}
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* out) {
  return answer(of_device(device, "width"), out);
}
int nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* out) {
  return answer(of_device(device, "max_gen"), out);
}
int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* out) {
  return answer(of_device(device, "max_width"), out);
}
int nvmlDeviceGetPcieReplayCounter(Device device, unsigned* out) {
  return answer(of_device(device, "replays"), out);
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, int* out) {
  return answer(nvlink_key(device, link, "state"), out);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  return answer_text(nvlink_key(device, link, "peer"), pci->bus_id, sizeof pci->bus_id);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int* out) {
  return answer(nvlink_key(device, link, "peer_type"), out);
}
int nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, int kind, unsigned long long* out) {
  const char* names[] = {"replay", "recovery", "crc"};
  return answer(nvlink_key(device, link, names[kind]), out);
}
int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    const bool speed = fields[i].field == kFieldNvLinkSpeed;
    fields[i].result = speed ? answer(nvlink_key(device, fields[i].scope, "speed"), &fields[i].value.whole) : 2;
  }
  return kSuccess;
}
int nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, int* out) {
  return answer(pair_key(a, b, "level"), out);
}
int nvmlDeviceGetP2PStatus(Device a, Device b, int caps, int* out) {
  return answer(pair_key(a, b, caps == kPeerRead ? "peer_read" : "?"), out);
}
int nvmlEventSetCreate(EventSet* set) {
  *set = reinterpret_cast<EventSet>(&script);
  return kSuccess;
}
int nvmlDeviceRegisterEvents(Device, unsigned long long types, EventSet) {
  return types == kEventXid ? int{kSuccess} : int{kNotSupported};
}
int nvmlEventSetWait_v2(EventSet, EventData* data, unsigned) {  // each event of the script comes once
  for (unsigned i = 0; i < 16; ++i) {
    const auto event = script.extract(std::to_string(i) + ".xid");
    if (event.empty()) continue;
    data->device = reinterpret_cast<Device>(static_cast<std::uintptr_t>(i) + 1);
    data->type = kEventXid;
    data->data = std::strtoull(event.mapped().c_str(), nullptr, 0);
    return kSuccess;
  }
  return kTimeout;
}
int nvmlEventSetFree(EventSet) {
  return kSuccess;
}
#endif
}

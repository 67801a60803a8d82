// The part of the NVIDIA Management Library's C interface that the monitor calls, declared here since nvml.h comes with
// CUDA and the library with the driver. Names, values and layouts as documented in the NVML API Reference
// (docs.nvidia.com/deploy/nvml-api); the functions are versioned by suffix, so these prototypes do not change.
#pragma once
#include <cstdint>

namespace drivetrain::nvml {

using Device = struct OpaqueDevice*;
using EventSet = struct OpaqueEventSet*;

enum Return : int {  // nvmlReturn_t
  kSuccess = 0,
  kNotSupported = 3,
  kInsufficientSize = 7,
  kTimeout = 10,
  kGpuIsLost = 15,
};
enum Clock : int { kClockSm = 1, kClockMemory = 2 };                  // nvmlClockType_t
enum MemoryError : int { kCorrected = 0, kUncorrected = 1 };          // nvmlMemoryErrorType_t
enum EccCounter : int { kVolatile = 0 };                              // since the driver was loaded
enum NvLinkError : int { kReplay = 0, kRecovery = 1, kCrcFlit = 2 };  // nvmlNvLinkErrorCounter_t
enum RemoteDevice : int { kRemoteGpu = 0, kRemoteSwitch = 2 };        // nvmlIntNvLinkDeviceType_t
enum Sensor : int { kTemperatureGpu = 0 };                            // nvmlTemperatureSensors_t
enum PeerCaps : int { kPeerRead = 0 };                                // nvmlGpuP2PCapsIndex_t
constexpr int kPeerOk = 0;                                            // nvmlGpuP2PStatus_t
constexpr unsigned kMostNvLinks = 18;                                 // NVML_NVLINK_MAX_LINKS
constexpr unsigned kFieldNvLinkSpeed = 164;                           // NVML_FI_DEV_NVLINK_GET_SPEED, MB/s
constexpr unsigned long long kEventXid = 8;                           // nvmlEventTypeXidCriticalError
constexpr unsigned kTextBytes = 96;                                   // NVML_DEVICE_UUID_V2_BUFFER_SIZE and names

struct PciInfo {  // nvmlPciInfo_t of the _v2 and _v3 functions
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:17:00.0"
};
struct Utilization {  // nvmlUtilization_t, percent of the last sample period
  unsigned gpu, memory;
};
struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};
union Value {  // nvmlValue_t
  double real;
  unsigned whole;
  unsigned long long wide;
};
struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type;
  int result;
  Value value;
};
struct EventData {  // nvmlEventData_t
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(PciInfo) == 68 && sizeof(FieldValue) == 40 && sizeof(EventData) == 32);

// Entry points by their documented names. Null: this driver has none; only those of `required` must be there.
struct Api {
  // required
  int (*init)();                                // nvmlInit_v2
  int (*shutdown)();                            // nvmlShutdown
  const char* (*error_text)(int);               // nvmlErrorString
  int (*count)(unsigned*);                      // nvmlDeviceGetCount_v2
  int (*by_index)(unsigned, Device*);           // nvmlDeviceGetHandleByIndex_v2
  int (*pci)(Device, PciInfo*);                 // nvmlDeviceGetPciInfo_v3
  int (*uuid)(Device, char*, unsigned);         // nvmlDeviceGetUUID
  int (*device_name)(Device, char*, unsigned);  // nvmlDeviceGetName
  // optional
  int (*utilization)(Device, Utilization*);                          // nvmlDeviceGetUtilizationRates
  int (*memory)(Device, Memory*);                                    // nvmlDeviceGetMemoryInfo
  int (*clock)(Device, int, unsigned*);                              // nvmlDeviceGetClockInfo, MHz
  int (*max_clock)(Device, int, unsigned*);                          // nvmlDeviceGetMaxClockInfo, MHz
  int (*throttle)(Device, unsigned long long*);                      // nvmlDeviceGetCurrentClocksThrottleReasons
  int (*power)(Device, unsigned*);                                   // nvmlDeviceGetPowerUsage, mW
  int (*power_limit)(Device, unsigned*);                             // nvmlDeviceGetEnforcedPowerLimit, mW
  int (*temperature)(Device, int, unsigned*);                        // nvmlDeviceGetTemperature, C
  int (*ecc)(Device, int, int, unsigned long long*);                 // nvmlDeviceGetTotalEccErrors
  int (*processes)(Device, unsigned*, void*);                        // nvmlDeviceGetComputeRunningProcesses_v3
  int (*pcie_gen)(Device, unsigned*);                                // nvmlDeviceGetCurrPcieLinkGeneration
  int (*pcie_width)(Device, unsigned*);                              // nvmlDeviceGetCurrPcieLinkWidth
  int (*pcie_max_gen)(Device, unsigned*);                            // nvmlDeviceGetMaxPcieLinkGeneration
  int (*pcie_max_width)(Device, unsigned*);                          // nvmlDeviceGetMaxPcieLinkWidth
  int (*pcie_replays)(Device, unsigned*);                            // nvmlDeviceGetPcieReplayCounter
  int (*nvlink_state)(Device, unsigned, int*);                       // nvmlDeviceGetNvLinkState
  int (*nvlink_peer)(Device, unsigned, PciInfo*);                    // nvmlDeviceGetNvLinkRemotePciInfo_v2
  int (*nvlink_peer_type)(Device, unsigned, int*);                   // nvmlDeviceGetNvLinkRemoteDeviceType
  int (*nvlink_errors)(Device, unsigned, int, unsigned long long*);  // nvmlDeviceGetNvLinkErrorCounter
  int (*fields)(Device, int, FieldValue*);                           // nvmlDeviceGetFieldValues
  int (*common_ancestor)(Device, Device, int*);                      // nvmlDeviceGetTopologyCommonAncestor
  int (*peer_status)(Device, Device, int, int*);                     // nvmlDeviceGetP2PStatus
  int (*event_set)(EventSet*);                                       // nvmlEventSetCreate
  int (*event_register)(Device, unsigned long long, EventSet);       // nvmlDeviceRegisterEvents
  int (*event_wait)(EventSet, EventData*, unsigned);                 // nvmlEventSetWait_v2, ms
  int (*event_free)(EventSet);                                       // nvmlEventSetFree
};

}  // namespace drivetrain::nvml

// The state of one accelerator at one moment. Absent: the device or its driver does not tell.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/monitor/reading.h"

namespace drivetrain {

struct DeviceSample {
  std::string pci, name;
  Reading utilization, memory_utilization;  // percent of the time: a kernel ran; memory was read or written
  Reading memory_used, memory_total;        // bytes
  Reading sm_mhz, sm_max_mhz, memory_mhz;
  Reading power_w, power_limit_w;
  Reading temperature_c;
  Reading throttle;                        // bits, see throttle_text()
  Reading ecc_corrected, ecc_uncorrected;  // since the driver was loaded
  Reading processes;                       // with a context on the device
  Reading last_xid;                        // number of the last critical error since the monitor started
  Reading lost;                            // 1: fell off the bus
};
std::span<const ReadingField<DeviceSample>> device_fields();

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  virtual std::vector<DeviceSample> sample() = 0;
};

// Why the clock is below its maximum, "hardware thermal slowdown, software power cap"; "" when it is not held back (an
// idle device is not). The bits are those of nvmlDeviceGetCurrentClocksThrottleReasons.
std::string throttle_text(std::uint64_t reasons);

}  // namespace drivetrain

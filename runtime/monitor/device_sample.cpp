#include "runtime/monitor/device_sample.h"

#include <array>

namespace drivetrain {
namespace {

using Field = ReadingField<DeviceSample>;
constexpr std::array kFields{
    Field{"utilization", "Percent of the time in which a kernel ran.", &DeviceSample::utilization},
    Field{"memory_utilization", "Percent of the time in which memory was accessed.",
          &DeviceSample::memory_utilization},
    Field{"memory_used", "Bytes of device memory in use.", &DeviceSample::memory_used},
    Field{"memory_total", "Bytes of device memory.", &DeviceSample::memory_total},
    Field{"sm_mhz", "Clock of the multiprocessors in MHz.", &DeviceSample::sm_mhz},
    Field{"sm_max_mhz", "Highest clock of the multiprocessors in MHz.", &DeviceSample::sm_max_mhz},
    Field{"memory_mhz", "Clock of the memory in MHz.", &DeviceSample::memory_mhz},
    Field{"power_w", "Power drawn in watts.", &DeviceSample::power_w},
    Field{"power_limit_w", "Power limit in force in watts.", &DeviceSample::power_limit_w},
    Field{"temperature_c", "Temperature of the chip in degrees Celsius.", &DeviceSample::temperature_c},
    Field{"throttle", "Bits of NVML that say why the clock is held back.", &DeviceSample::throttle},
    Field{"ecc_corrected", "Memory errors corrected since the driver was loaded.", &DeviceSample::ecc_corrected},
    Field{"ecc_uncorrected", "Memory errors not corrected since the driver was loaded.",
          &DeviceSample::ecc_uncorrected},
    Field{"processes", "Processes with a context on the device.", &DeviceSample::processes},
    Field{"last_xid", "Number of the last critical error (XID) since the run began.", &DeviceSample::last_xid},
    Field{"lost", "1 when the device fell off the bus.", &DeviceSample::lost},
};

struct Reason {
  std::uint64_t bit;
  const char* text;
};
// nvmlClocksThrottleReason* of the NVML API Reference; 0x1, idle, holds nothing back.
constexpr std::array<Reason, 8> kReasons{{{0x2, "application clock setting"},
                                          {0x4, "software power cap"},
                                          {0x8, "hardware slowdown"},
                                          {0x10, "sync boost"},
                                          {0x20, "software thermal slowdown"},
                                          {0x40, "hardware thermal slowdown"},
                                          {0x80, "hardware power brake"},
                                          {0x100, "display clock setting"}}};

}  // namespace

std::span<const Field> device_fields() {
  return kFields;
}

std::string throttle_text(std::uint64_t reasons) {
  std::string text;
  for (const Reason& reason : kReasons)
    if (reasons & reason.bit) text += (text.empty() ? "" : ", ") + std::string(reason.text);
  return text;
}

}  // namespace drivetrain

#include "runtime/monitor/nvml.h"
#include "runtime/monitor/nvml_ask.h"

namespace drivetrain {

// Takes the critical errors that were reported since the last call. The set is made at the first.
void Nvml::read_events() {
  if (!api_.event_set || !api_.event_register || !api_.event_wait) return;
  if (!events_) {
    if (api_.event_set(&events_) != nvml::kSuccess) {
      api_.event_wait = nullptr;  // do not try every second
      return;
    }
    for (const nvml::Device handle : handles_) api_.event_register(handle, nvml::kEventXid, events_);
  }
  nvml::EventData event{};
  constexpr int kMostEvents = 64;  // of one call: a storm must not hold the sampler
  for (int i = 0; i < kMostEvents && api_.event_wait(events_, &event, 0) == nvml::kSuccess; ++i)
    for (std::size_t d = 0; d < handles_.size(); ++d)
      if (handles_[d] == event.device && event.type == nvml::kEventXid)
        last_xid_[d] = static_cast<double>(event.data);
}

std::vector<DeviceSample> Nvml::sample() {
  using nvml::number;
  read_events();
  std::vector<DeviceSample> samples;
  for (std::size_t d = 0; d < handles_.size(); ++d) {
    const nvml::Device handle = handles_[d];
    DeviceSample s;
    s.pci = ids_[d].pci;
    s.name = ids_[d].name;
    s.last_xid = last_xid_[d];
    nvml::Utilization utilization{};
    const int first = api_.utilization ? api_.utilization(handle, &utilization) : int{nvml::kNotSupported};
    s.lost = first == nvml::kGpuIsLost ? 1 : 0;
    if (first == nvml::kSuccess) {
      s.utilization = utilization.gpu;
      s.memory_utilization = utilization.memory;
    }
    if (const auto memory = nvml::ask<nvml::Memory>(api_.memory, handle)) {
      s.memory_used = static_cast<double>(memory->used);
      s.memory_total = static_cast<double>(memory->total);
    }
    s.sm_mhz = number<unsigned>(1, api_.clock, handle, int{nvml::kClockSm});
    s.sm_max_mhz = number<unsigned>(1, api_.max_clock, handle, int{nvml::kClockSm});
    s.memory_mhz = number<unsigned>(1, api_.clock, handle, int{nvml::kClockMemory});
    s.throttle = number<unsigned long long>(1, api_.throttle, handle);
    s.power_w = number<unsigned>(1e-3, api_.power, handle);
    s.power_limit_w = number<unsigned>(1e-3, api_.power_limit, handle);
    s.temperature_c = number<unsigned>(1, api_.temperature, handle, int{nvml::kTemperatureGpu});
    s.ecc_corrected = number<unsigned long long>(1, api_.ecc, handle, int{nvml::kCorrected}, int{nvml::kVolatile});
    s.ecc_uncorrected =
        number<unsigned long long>(1, api_.ecc, handle, int{nvml::kUncorrected}, int{nvml::kVolatile});
    // Asked with room for none, the library answers with the number it would have written.
    unsigned processes = 0;
    const int listed = api_.processes ? api_.processes(handle, &processes, nullptr) : int{nvml::kNotSupported};
    if (listed == nvml::kSuccess || listed == nvml::kInsufficientSize) s.processes = processes;
    samples.push_back(std::move(s));
  }
  return samples;
}

}  // namespace drivetrain

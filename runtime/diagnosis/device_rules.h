// What a device's own figures say about its rank: the table utilisation x memory traffic, heat, power, clock. A device
// at 100 % may compute or spin; power tells.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/diagnosis/device_facts.h"

namespace drivetrain {

enum class DeviceState {
  kUnknown,
  kComputing,    // busy, at power
  kSpinning,     // busy at low power: a kernel that polls, as in a collective
  kMemoryBound,  // memory busier than the arithmetic
  kStarved       // neither: data movement, launches or the host
};
const char* name(DeviceState state);
DeviceState device_state(const DeviceFacts& sample);

struct DeviceFinding {
  enum class Kind { kState, kHot, kThrottled, kSlowClock, kPowerDrop };
  Kind kind = Kind::kState;
  int rank = -1;
  std::string sentence, action;
};

// Of one device among its peers (by world rank). `rank` must be in the span.
std::vector<DeviceFinding> device_findings(std::span<const DeviceFacts> devices, int rank);

// A sudden, lasting fall in a series of power readings in watts, oldest first; empty sentence: none.
DeviceFinding power_drop(std::span<const double> power_w, int rank);

}  // namespace drivetrain

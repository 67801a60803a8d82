// One look at a rank's device, as a monitor gives it. Zero or absent: unknown.
#pragma once
#include <optional>
#include <string>

namespace drivetrain {

struct DeviceFacts {
  std::string name = {};
  std::optional<double> utilisation = {};         // share of time with a kernel, 0..1
  std::optional<double> memory_utilisation = {};  // share of time with memory traffic, 0..1
  std::optional<double> power_w = {}, power_limit_w = {};
  std::optional<double> temperature_c = {};
  std::optional<double> clock_mhz = {}, max_clock_mhz = {};
  std::string throttle = {};  // reasons in words, e.g. "HW thermal slowdown"; empty: none
};

}  // namespace drivetrain
